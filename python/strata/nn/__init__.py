"""Layers, losses and what goes with them. Names are loaded on first use."""

from __future__ import annotations

from strata import _lazy

from . import modules
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Buffer", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter"]
__all__ += [name for name in modules.__all__ if name not in __all__]


def _layer(name: str) -> Any:
    try:
        return getattr(modules, name)
    except AttributeError:
        raise KeyError(name) from None


__getattr__, __dir__ = _lazy.of(
    globals(), {"parallel": "DataParallel", "common_types": "factory_kwargs"}, "attention common_types functional grad hooks init parallel utils", _layer
)
