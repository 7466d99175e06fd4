"""Pooling functions. Inputs are (N, C, spatial...) or (C, spatial...)."""

from __future__ import annotations

import math

from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..modules.utils import Size


def _max_pool(
    rank: int, input: Tensor, kernel_size: Size, stride: Size, padding: Size, dilation: Size, ceil_mode: bool
) -> Tensor:
    stride = [] if stride is None else stride  # empty: same as kernel_size
    operator = (_ops.max_pool1d, _ops.max_pool2d)[rank - 1] if rank < 3 else _ops.max_pool3d
    return operator(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last dimension; return_indices adds where each maximum stands."""
    if has_torch_function_unary(input):
        return overridden(max_pool1d, (input,), locals())
    args = (input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool1d_with_indices(*args) if return_indices else _max_pool(1, *args)


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last two dimensions; return_indices adds where each maximum stands, counted over
    the plane."""
    if has_torch_function_unary(input):
        return overridden(max_pool2d, (input,), locals())
    args = (input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool2d_with_indices(*args) if return_indices else _max_pool(2, *args)


def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of the last three dimensions; return_indices adds where each maximum stands."""
    if has_torch_function_unary(input):
        return overridden(max_pool3d, (input,), locals())
    args = (input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool3d_with_indices(*args) if return_indices else _max_pool(3, *args)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """max_pool1d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(max_pool1d_with_indices, (input,), locals())

    def row(value: Size, fill: int) -> list[int]:  # a window of height 1
        return [fill, value if isinstance(value, int) else value[0]]

    values, indices = _ops.max_pool2d_with_indices(
        input.unsqueeze(-2),
        row(kernel_size, 1),
        row(kernel_size if stride is None else stride, 1),
        row(padding, 0),
        row(dilation, 1),
        ceil_mode,
    )
    return values.squeeze(-2), indices.squeeze(-2)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """max_pool2d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(max_pool2d_with_indices, (input,), locals())
    stride = [] if stride is None else stride
    return _ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> tuple[Tensor, Tensor]:
    """max_pool3d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(max_pool3d_with_indices, (input,), locals())
    stride = [] if stride is None else stride
    return _ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def _output_size(output_size: Size, input: Tensor, rank: int) -> list[int]:
    """One number per spatial dimension; None keeps the input's."""
    if not isinstance(output_size, (list, tuple)):
        output_size = [output_size] * rank
    elif len(output_size) >= input.dim():
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = input.size()[-len(output_size) :] if input.dim() else ()
    if None not in output_size or len(own) < len(output_size):  # of too few dims the operator tells
        return [0 if wanted is None else wanted for wanted in output_size]
    return [n if wanted is None else wanted for wanted, n in zip(output_size, own, strict=True)]


def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """Mean over windows chosen so that the plane becomes output_size; None keeps a dimension."""
    if has_torch_function_unary(input):
        return overridden(adaptive_avg_pool2d, (input,), locals())
    return _ops.adaptive_avg_pool2d(input, _output_size(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Size) -> Tensor:
    """Mean over windows chosen so that the volume becomes output_size; None keeps a dimension."""
    if has_torch_function_unary(input):
        return overridden(adaptive_avg_pool3d, (input,), locals())
    return _ops.adaptive_avg_pool3d(input, _output_size(output_size, input, 3))


def _adaptive_max(rank: int, input: Tensor, output_size: Size, return_indices: bool) -> Any:
    operator = (_ops.adaptive_max_pool1d, _ops.adaptive_max_pool2d, _ops.adaptive_max_pool3d)[rank - 1]
    result = operator(input, output_size if rank == 1 else _output_size(output_size, input, rank))
    return result if return_indices else result[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Size, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool1d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool1d_with_indices, (input,), locals())
    return _adaptive_max(1, input, output_size, True)


def adaptive_max_pool1d(input: Tensor, output_size: Size, return_indices: bool = False) -> Any:
    """Maximum over windows chosen so that the last dimension becomes output_size."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool1d, (input,), locals())
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Size, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool2d_with_indices, (input,), locals())
    return _adaptive_max(2, input, output_size, True)


def adaptive_max_pool2d(input: Tensor, output_size: Size, return_indices: bool = False) -> Any:
    """Maximum over windows chosen so that the plane becomes output_size; None keeps a dimension."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool2d, (input,), locals())
    return _adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Size, return_indices: bool = True
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool3d and the indices of its maxima."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool3d_with_indices, (input,), locals())
    return _adaptive_max(3, input, output_size, True)


def adaptive_max_pool3d(input: Tensor, output_size: Size, return_indices: bool = False) -> Any:
    """Maximum over windows chosen so that the volume becomes output_size; None keeps a dimension."""
    if has_torch_function_unary(input):
        return overridden(adaptive_max_pool3d, (input,), locals())
    return _adaptive_max(3, input, output_size, return_indices)


def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None, ceil_mode: bool
) -> Tensor:
    if norm_type == float("inf"):
        return (max_pool1d, max_pool2d, max_pool3d)[rank - 1](input.abs(), kernel_size, stride, 0, 1, ceil_mode)
    mean = (_ops.avg_pool1d, _ops.avg_pool2d, _ops.avg_pool3d)[rank - 1]
    means = mean(input.pow(norm_type), kernel_size, [] if stride is None else stride, 0, ceil_mode)
    elements = kernel_size**rank if isinstance(kernel_size, int) else math.prod(kernel_size)
    sums = means.mul(elements)
    nothing = sums.detach() == 0  # where the slope of the root is infinite: no gradient there
    return _ops.where(nothing, 0.0, _ops.where(nothing, 1.0, sums).pow(1.0 / norm_type))


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum over windows of x ** norm_type) ** (1 / norm_type) along the last dimension."""
    if has_torch_function_unary(input):
        return overridden(lp_pool1d, (input,), locals())
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum over windows of x ** norm_type) ** (1 / norm_type) over the last two dimensions."""
    if has_torch_function_unary(input):
        return overridden(lp_pool2d, (input,), locals())
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """(sum over windows of x ** norm_type) ** (1 / norm_type) over the last three dimensions."""
    if has_torch_function_unary(input):
        return overridden(lp_pool3d, (input,), locals())
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
