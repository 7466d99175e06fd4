"""Sampling of images and volumes at given points. Source of the coordinates: arXiv:1506.02025."""

from __future__ import annotations

import itertools

import strata
from strata import Tensor

from .._ops import has_torch_function_variadic, overridden


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
    _check(input, grid, mode, padding_mode)
    sizes, aligned = list(input.shape[2:]), bool(align_corners)
    half = input.dtype in (strata.float16, strata.bfloat16)
    values, points = (input.float(), grid.float()) if half else (input, grid)
    axes = [_Axis(n, aligned, padding_mode, values.dtype) for n in sizes]
    # The last dim of the grid counts from the innermost dimension.
    positions = [a.unscaled(points[..., len(sizes) - 1 - d]) for d, a in enumerate(axes)]
    taps = {"bilinear": _linear, "nearest": _nearest, "bicubic": _cubic}[mode]
    per_axis = [taps(a, p) for a, p in zip(axes, positions, strict=True)]
    flat = values.flatten(2)
    total = None
    for chosen in itertools.product(*per_axis):
        place, factor = None, None
        for n, (index, weight) in zip(sizes, chosen, strict=True):
            place = index if place is None else place * n + index
            factor = weight if factor is None else factor * weight
        found = flat.gather(2, place.flatten(1)[:, None].expand(-1, flat.size(1), -1))
        part = found.reshape([*found.shape[:2], *place.shape[1:]]) * factor[:, None]
        total = part if total is None else total + part
    return total.to(input.dtype)


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: {mode!r}"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"{padding_mode!r}"
        )
    rank = input.dim() - 2
    if rank not in (2, 3) or grid.dim() != rank + 2:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.dtype != grid.dtype or not input.is_floating_point():
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same floating dtype, but input has {input.dtype} and grid "
            f"has {grid.dtype}"
        )
    if input.size(0) != grid.size(0) or grid.size(-1) != rank:
        raise RuntimeError(
            f"grid_sampler(): expected grid of the batch size of input and of size {rank} in its last dimension, but got "
            f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but got sizes {list(input.shape)}"
        )
    if mode == "bicubic" and rank != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


class _Axis:
    """One spatial dimension: where points lie in it, and what stands for places outside of it."""

    def __init__(self, size: int, aligned: bool, padding: str, dtype) -> None:
        self.size, self.aligned, self.padding, self.dtype = size, aligned, padding, dtype

    def unscaled(self, x: Tensor) -> Tensor:
        return (x + 1) / 2 * (self.size - 1) if self.aligned else ((x + 1) * self.size - 1) / 2

    def inside(self, at: Tensor) -> Tensor:
        """Positions moved into the dimension, as padding_mode says; "zeros" leaves them."""
        if self.padding == "zeros":
            return at
        if self.padding == "reflection":
            at = self._reflected(at)
        return at.clamp(0, self.size - 1)

    def _reflected(self, at: Tensor) -> Tensor:
        low, span = (0.0, float(self.size - 1)) if self.aligned else (-0.5, float(self.size))
        if span == 0:
            return at * 0
        away = (at - low).abs()
        extra = away.fmod(span)
        turned = (away.detach() / span).floor() % 2 != 0
        return strata.where(turned, span - extra, extra) + low

    def tap(self, at: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Index and weight of a whole position; outside, the weight is 0."""
        within = (at >= 0) & (at <= self.size - 1)
        return at.detach().clamp(0, self.size - 1).long(), strata.where(within, weight, strata.zeros_like(weight))


def _linear(axis: _Axis, at: Tensor) -> list[tuple[Tensor, Tensor]]:
    at = axis.inside(at)
    first = at.detach().floor()
    part = at - first
    return [axis.tap(first, 1 - part), axis.tap(first + 1, part)]


def _nearest(axis: _Axis, at: Tensor) -> list[tuple[Tensor, Tensor]]:
    whole = axis.inside(at).round()
    # 1 everywhere, and a derivative of 0 by the grid, which has a gradient in every mode.
    return [axis.tap(whole, whole.sign() * 0 + 1 if whole.requires_grad else strata.ones_like(whole))]


def _cubic(axis: _Axis, at: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Cubic convolution with a = -0.75. Source: R. Keys, IEEE TASSP 29 (1981)."""
    a = -0.75
    first = at.detach().floor()
    part = at - first
    taps = []
    for k in range(-1, 3):
        x = (part - k).abs()
        weight = ((a + 2) * x - (a + 3)) * x * x + 1 if k in (0, 1) else ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        taps.append(axis.tap(axis.inside(first + k), weight))
    return taps


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
    lines = []
    for n in size[2:]:
        line = strata.linspace(-1, 1, n, dtype=theta.dtype) if n > 1 else strata.zeros(1, dtype=theta.dtype)
        lines.append(line if align_corners else line * ((n - 1) / n))
    grids = strata.meshgrid(*lines, indexing="ij")
    points = strata.stack([*reversed(grids), strata.ones_like(grids[0])], -1)
    moved = points.reshape(1, -1, rank + 1).expand(size[0], -1, -1) @ theta.transpose(1, 2)
    return moved.reshape([size[0], *size[2:], rank])
