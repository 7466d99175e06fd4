"""Data parallelism over devices: not provided yet; the names say so when they are used."""

from __future__ import annotations

from .modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WAY_OUT = (
    "strata.nn.parallel.{name} is not provided: run one process per device and average the gradients after backward()"
)


class DataParallel(Module):
    """Not provided."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_WAY_OUT.format(name="DataParallel"))


class DistributedDataParallel(Module):
    """Not provided."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_WAY_OUT.format(name="DistributedDataParallel"))
