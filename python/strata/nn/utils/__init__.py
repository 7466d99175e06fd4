"""Helpers over parameters and sequences. Names are loaded on first use."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOME = {
    "clip_grad_norm": "clip_grad",
    "clip_grad_norm_": "clip_grad",
    "clip_grad_value_": "clip_grad",
    "clip_grads_with_norm_": "clip_grad",
    "get_total_norm": "clip_grad",
    "parameters_to_vector": "convert_parameters",
    "vector_to_parameters": "convert_parameters",
}
_SUBMODULES = ("clip_grad", "convert_parameters", "rnn")

__all__ = sorted([*_HOME, "rnn"])


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
