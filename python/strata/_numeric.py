"""Functions of sampled data, composed of other functions of the module: counts in bins. Loaded on first use."""

from __future__ import annotations

import strata
from strata import Tensor
from strata._into import stored as _stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["histogram", "histogramdd"]


def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,  # noqa: A002 - PyTorch's name
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Counts (or sums of weight) of the elements in bins: a number of bins of equal width over range (the elements'
    extremes unless given), or their edges, an ascending 1-d tensor. The last bin has both its ends. density divides
    by the total and the widths. float32 and float64."""
    flat = input.reshape(-1, 1)
    if weight is not None:
        if weight.shape != input.shape:
            raise RuntimeError(
                "histogramdd: if weight tensor is provided it should have the same shape as the input tensor, "
                f"but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
            )
        weight = weight.reshape(-1)
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram(): argument 'range' goes with a number of bins; bins is a tensor of edges")
    found = histogramdd(flat, [bins], range=range, weight=weight, density=density)
    made = strata.return_types.histogram((found.hist, found.bin_edges[0]))
    if out is None:
        return made
    for target, value in zip(out, made, strict=True):
        if target.dtype != input.dtype:
            raise RuntimeError(
                f"histogram: input tensor and out= should have the same dtype, but got {input.dtype} and "
                f"{target.dtype}"
            )
        _stored("histogram", value, target)
    return strata.return_types.histogram(out)


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,  # noqa: A002 - PyTorch's name
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Counts (or sums of weight) of points, the rows of input (..., D), in a grid of bins of D dims: numbers of bins
    over range (D pairs of ends, the points' extremes unless given), or a list of edges for each dim."""
    if input.dim() < 2:
        raise RuntimeError("histogramdd: input tensor should have at least 2 dimensions")
    dims = input.shape[-1]
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(bins) != dims:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: got "
            f"{len(bins)} for {dims}"
        )
    if input.dtype not in (strata.float32, strata.float64):
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{input.dtype}'; convert the input with .float() first"
        )
    if weight is not None:
        if weight.shape != input.shape[:-1]:
            raise RuntimeError(
                "histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with "
                f"shape {list(weight.shape)}"
            )
        if weight.dtype != input.dtype:
            raise RuntimeError(
                "histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
            )
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(
            f"histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(range)}"
        )
    points = input.detach().reshape(-1, dims)
    ends = None if range is None else [float(v) for v in range]
    edges = [_edges(points[:, d], b, ends and ends[2 * d : 2 * d + 2], d) for d, b in enumerate(bins)]
    place = points.new_zeros(points.shape[0], dtype=strata.int64)
    inside = points.new_ones(points.shape[0], dtype=strata.bool)
    shape = [e.numel() - 1 for e in edges]
    for d, edge in enumerate(edges):
        column = points[:, d].contiguous()
        inside &= (column >= edge[0]) & (column <= edge[-1])
        even = isinstance(bins[d], int) and shape[d] < _MANY_BINS
        at = _even_place(column, edge) if even else strata.bucketize(column, edge, right=True) - 1
        place = place * shape[d] + at.clamp(max=shape[d] - 1)
    weights = input.new_ones([]).expand(place.shape) if weight is None else weight.detach().reshape(-1)
    total = strata.Size(shape).numel()
    place = strata.where(inside, place, total)  # beside the others
    hist = points.new_zeros(total + 1).index_add(0, place, weights)[:total].reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            hist = hist / (edge[1:] - edge[:-1]).reshape([-1] + [1] * (dims - d - 1))
    return strata.return_types.histogramdd((hist, tuple(edges)))


_MANY_BINS = 1 << 16  # from here on rounding may move a place by more than one


def _even_place(column: Tensor, edges: Tensor) -> Tensor:
    """Positions in bins of equal widths: computed, and moved by one where that came to lie beside an edge."""
    low, high, last = edges[0], edges[-1], edges.numel() - 2
    guess = ((column - low) * ((last + 1) / (high - low))).nan_to_num(0).clamp(0, last).long()
    return guess - (column < edges[guess]).long() + (column >= edges[guess + 1]).long()


def _edges(column: Tensor, bins: int | Tensor, ends: list[float] | None, dim: int) -> Tensor:
    """The edges of the bins of one dim."""
    if isinstance(bins, Tensor):
        if bins.dim() != 1:
            raise RuntimeError(
                f"histogramdd: bins tensor should have one dimension, but got {bins.dim()} dimensions in the "
                f"bins tensor for dimension {dim}"
            )
        if bins.numel() < 2:
            raise RuntimeError(
                f"histogramdd: bins tensor should have at least 2 elements, but got {bins.numel()} in dimension "
                f"{dim}"
            )
        if bins.dtype != column.dtype:
            raise RuntimeError(
                "histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{column.dtype} and bins for dimension {dim} with dtype {bins.dtype}"
            )
        return bins.detach()
    if bins <= 0:
        raise RuntimeError(f"histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if ends is None:
        ends = [column.min().item(), column.max().item()] if column.numel() else [0.0, 1.0]
    low, high = ends
    if not (abs(low) < strata.inf and abs(high) < strata.inf):
        raise RuntimeError(f"histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return strata.linspace(low, high, bins + 1, dtype=column.dtype, device=column.device)
