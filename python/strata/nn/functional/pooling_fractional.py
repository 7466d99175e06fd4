"""Fractional max pooling: windows begin at places that random numbers choose, one per plane and dimension."""

from __future__ import annotations

from strata import Tensor, rand

from .. import _ops
from .._ops import has_torch_function_variadic, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..modules.utils import Size


def _fractional(
    rank: int, input: Tensor, kernel_size: Size, output_size: Size | None, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{rank}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = list(output_ratio) if isinstance(output_ratio, (list, tuple)) else [output_ratio] * rank
        if len(ratios) != rank:
            raise ValueError(f"{name} requires output_ratio to either be a single float or tuple of {rank} floats")
        output_size = [int(input.size(d - rank) * ratio) for d, ratio in enumerate(ratios)]
    if samples is None:
        batch = 1 if input.dim() == rank + 1 else input.size(0)
        samples = rand(batch, input.size(-rank - 1), rank, dtype=input.dtype, device=input.device)
    return getattr(_ops, name)(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool2d and the indices of its maxima, counted over the plane."""
    if has_torch_function_variadic(input, _random_samples):
        return overridden(fractional_max_pool2d_with_indices, (input, _random_samples), locals())
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool3d and the indices of its maxima, counted over the volume."""
    if has_torch_function_variadic(input, _random_samples):
        return overridden(fractional_max_pool3d_with_indices, (input, _random_samples), locals())
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maximum over output_size windows (or output_ratio times the input's size) of the last two dimensions, which begin
    at random places. _random_samples (N, C, 2), numbers from 0 to 1 of input's dtype, fixes them."""
    result = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maximum over output_size windows (or output_ratio times the input's size) of the last three dimensions, which
    begin at random places. _random_samples (N, C, 3), numbers from 0 to 1 of input's dtype, fixes them."""
    result = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]
