"""Dropout functions: in training each element, or each channel, is zeroed with probability p.

A channel's mask is a dropout of ones of shape (N, C, 1, ...), so all forms draw their random numbers in one operator.
"""

from __future__ import annotations

import warnings

from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, overridden

# Where SELU's negative side ends: -scale * alpha of arXiv:1706.02515.
_SELU_FLOOR = -1.7580993408473766


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _channel_shape(input: Tensor) -> list[int]:
    if input.dim() < 2:
        raise RuntimeError(f"channel dropout requires at least 2 dimensions in the input, but got {input.dim()}")
    return [input.size(0), input.size(1)] + [1] * (input.dim() - 2)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if not training or p == 0.0:
        return input
    mask = _ops.dropout(input.new_ones(_channel_shape(input)), p, True)
    return input.mul_(mask) if inplace else input * mask


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element is zeroed with probability p, the others are divided by 1 - p. ValueError for p outside [0, 1]."""
    if has_torch_function_unary(input):
        return overridden(dropout, (input,), locals())
    _check_probability(p)
    return _ops.dropout_(input, p, training) if inplace else _ops.dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (N, C, L) or (C, L) are zeroed as a whole. RuntimeError for another number of dimensions."""
    if has_torch_function_unary(input):
        return overridden(dropout1d, (input,), locals())
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _drop_channels(input, p, training, inplace)
    result = _drop_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return input if inplace else result


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (N, C, H, W) are zeroed as a whole; a 3-d input counts as (N, C, L), with a warning."""
    if has_torch_function_unary(input):
        return overridden(dropout2d, (input,), locals())
    _check_probability(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead.",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (N, C, D, H, W) or (C, D, H, W) are zeroed as a whole."""
    if has_torch_function_unary(input):
        return overridden(dropout3d, (input,), locals())
    _check_probability(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead.",
            stacklevel=2,
        )
    if input.dim() == 5:
        return _drop_channels(input, p, training, inplace)
    result = _drop_channels(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return input if inplace else result


def _alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    """Dropped values become SELU's floor; an affine map then keeps mean and variance (arXiv:1706.02515, section 3)."""
    if not training or p == 0.0:
        return input
    if p == 1.0 or input.numel() == 0:
        zero = input.new_zeros(())
        return input.mul_(zero) if inplace else input * zero
    scale = 1.0 / ((_SELU_FLOOR**2 * p + 1) * (1 - p)) ** 0.5
    shape = _channel_shape(input) if channels else input.shape
    kept = _ops.dropout(input.new_ones(shape), p, True).ne(0).to(input.dtype)
    shift = (1 - kept) * (_SELU_FLOOR * scale) - (_SELU_FLOOR * scale * p)
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps zero mean and unit variance after SELU. Source: arXiv:1706.02515."""
    if has_torch_function_unary(input):
        return overridden(alpha_dropout, (input,), locals())
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, channels=False)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...)."""
    if has_torch_function_unary(input):
        return overridden(feature_alpha_dropout, (input,), locals())
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, channels=True)
