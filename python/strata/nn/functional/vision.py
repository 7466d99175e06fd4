"""Padding and rearrangement of images."""

from __future__ import annotations

from strata import Tensor

from .. import _ops
from .._ops import handle_torch_function, has_torch_function_unary


def pad(input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Adds pad[0] elements before and pad[1] after the last dimension, pad[2] and pad[3] at the one before it, ...

    mode: "constant" (with `value`, 0 unless given), "reflect", "replicate" or "circular"; negative numbers cut off.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(_pad, (input,), input, pad, mode=mode, value=value)
    return _ops.pad(input, pad, mode, value)


_pad = pad  # its second argument hides the function's own name


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) to (*, C * r * r, H, W): the inverse of pixel_shuffle.

    RuntimeError where height or width is not a multiple of downscale_factor.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(pixel_unshuffle, (input,), input, downscale_factor)
    r = downscale_factor
    *lead, channels, height, width = input.shape
    if r <= 0 or height % r or width % r:
        raise RuntimeError(
            f"pixel_unshuffle expects height and width to be divisible by downscale_factor, "
            f"but got a {height} x {width} input and downscale_factor={r}"
        )
    blocks = input.reshape([*lead, channels, height // r, r, width // r, r])
    n = len(lead)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return blocks.permute(order).reshape([*lead, channels * r * r, height // r, width // r])


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, ...) with the channels of `groups` groups interleaved. Source: arXiv:1707.01083.

    RuntimeError where groups does not divide C.
    """
    if has_torch_function_unary(input):
        return handle_torch_function(channel_shuffle, (input,), input, groups)
    batch, channels = input.shape[:2]
    if groups <= 0 or channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = input.reshape([batch, groups, channels // groups, *input.shape[2:]])
    return split.transpose(1, 2).reshape(input.shape)
