"""Padding and rearrangement of images."""

from __future__ import annotations

import strata
from strata import Tensor, contiguous_format

from .. import _ops
from .._ops import has_torch_function_unary, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..modules.utils import Size


def pad(input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Adds pad[0] elements before and pad[1] after the last dimension, pad[2] and pad[3] at the one before it, ...

    mode: "constant" (with `value`, 0 unless given), "reflect", "replicate" or "circular"; negative numbers cut off.
    """
    if has_torch_function_unary(input):
        return overridden(_pad, (input,), locals())
    return _ops.pad(input, pad, mode, value)


_pad = pad  # its second argument hides the function's own name


def unfold(input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> Tensor:
    """The windows of (N, C, H, W) or (C, H, W) as columns, (N, C * kernel area, windows)."""
    if has_torch_function_unary(input):
        return overridden(unfold, (input,), locals())
    return _ops.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """Columns (N, C * kernel area, windows) added up at their places in images (N, C, *output_size)."""
    if has_torch_function_unary(input):
        return overridden(fold, (input,), locals())
    return _ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


def _channels_last_format(input: Tensor):
    """The memory format of images or volumes whose channels vary fastest; None for others."""
    format = {4: strata.channels_last, 5: strata.channels_last_3d}.get(input.dim())
    return format if format and not input.is_contiguous() and input.is_contiguous(memory_format=format) else None


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, ...) with the channels of `groups` groups interleaved. Source: arXiv:1707.01083.

    RuntimeError where groups does not divide C.
    """
    if has_torch_function_unary(input):
        return overridden(channel_shuffle, (input,), locals())
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    batch, channels = input.shape[:2]
    if groups <= 0 or channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = input.reshape([batch, groups, channels // groups, *input.shape[2:]])
    turned = split.transpose(1, 2).clone(memory_format=contiguous_format)
    result, format = turned.reshape(input.shape), _channels_last_format(input)
    return result if format is None else result.contiguous(memory_format=format)
