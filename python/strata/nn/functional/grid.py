"""Sampling of images and volumes at given points. Source of the coordinates: arXiv:1506.02025."""

from __future__ import annotations

import strata
from strata import Tensor

from .._ops import has_torch_function_variadic, overridden

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """(N, C, spatial...) sampled at grid (N, points..., 2 or 3), whose last dim is x, y(, z) in [-1, 1].

    mode: "bilinear", "nearest" or, for images, "bicubic". padding_mode: "zeros", "border" or "reflection".
    align_corners: whether -1 and 1 are the centres of the outermost elements rather than their outer edges.
    """
    if has_torch_function_variadic(input, grid):
        return overridden(grid_sample, (input, grid), locals())
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: {mode!r}"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"{padding_mode!r}"
        )
    return strata.grid_sampler(
        input, grid, _MODES.index(mode), _PADDINGS.index(padding_mode), bool(align_corners)
    )


def affine_grid(theta: Tensor, size: list[int], align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample that the affine maps theta (N, 2, 3) or (N, 3, 4) make for outputs (N, C, spatial...)."""
    if has_torch_function_variadic(theta):
        return overridden(affine_grid, (theta,), locals())
    rank = len(size) - 2
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if rank not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms; got size {list(size)}"
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of affine matrices of shape Nx{rank}x{rank + 1} for size {list(size)}. Got {list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    return strata.affine_grid_generator(theta, size, bool(align_corners))
