"""Helpers over parameters and sequences. Names are loaded on first use."""

from __future__ import annotations

from strata import _lazy

# At once: these two functions have the names of their files, and stand before them.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_HOMES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
}

__all__ = [*_lazy.listed(_HOMES), "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
__getattr__, __dir__ = _lazy.of(
    globals(), _HOMES, " ".join((*_HOMES, "parametrizations parametrize prune rnn stateless"))
)
