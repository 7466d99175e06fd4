"""Helpers over parameters and sequences. Names are loaded on first use."""

from __future__ import annotations

import importlib

from .._missing import missing_function

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
_MISSING = {
    "fuse_conv_bn_eval": "multiply the convolution's weight by the norm's scale, and fold its shift into the bias",
    "remove_spectral_norm": "spectral_norm is not provided either",
    "remove_weight_norm": "weight_norm is not provided either",
    "skip_init": "build the module with device='meta', then call its to_empty(device='cpu')",
    "spectral_norm": "divide the weight by its largest singular value in forward",
    "weight_norm": "keep direction and length as two parameters and compute the weight in forward",
}
_SUBMODULES = ("clip_grad", "convert_parameters", "rnn")

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MISSING:
        value = missing_function(__name__, name, _MISSING[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
