"""Data parallelism over devices. Where there is one device, or none beside the CPU, the module is called as it is."""

from __future__ import annotations

import strata
from strata._missing import missing_class

from .modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__path__: list[str] = []  # PyTorch's files of it are found elsewhere (_absent.py)
_WAY_OUT = "run one process per device and average the gradients after backward()"

DistributedDataParallel = missing_class(__name__, "DistributedDataParallel", _WAY_OUT, Module)


def _check(device_ids: Sequence | None) -> list:
    """The devices to use: at most one. NotImplementedError for several."""
    count = strata.accelerator.device_count() if strata.accelerator.is_available() else 0
    chosen = list(range(count)) if device_ids is None else list(device_ids)
    if len(chosen) > 1 and count > 1:
        raise NotImplementedError(f"DataParallel: several devices ({chosen}) are not provided: {_WAY_OUT}, or name one in device_ids")
    return chosen if count else []


class DataParallel(Module):
    """`module` on one device: its parameters are under `module.` in the state dictionary. NotImplementedError for several
    devices."""

    def __init__(self, module: Module, device_ids: Sequence | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = _check(device_ids)
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence | None = None, output_device: Any = None, dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:  # fmt: skip
    """module(*inputs) on one device; NotImplementedError for several."""
    _check(device_ids)
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
