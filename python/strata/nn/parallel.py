"""Data parallelism over devices: not provided yet; the names say so when they are used."""

from __future__ import annotations

from strata._missing import missing_class

from .modules.module import Module

_WAY_OUT = "run one process per device and average the gradients after backward()"

DataParallel = missing_class(__name__, "DataParallel", _WAY_OUT, Module)
DistributedDataParallel = missing_class(__name__, "DistributedDataParallel", _WAY_OUT, Module)
