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
    points = input.reshape(-1, dims)
    even = not any(isinstance(b, Tensor) for b in bins)
    if even:
        edges = tuple(strata.ops.strata._bin_edges(points, bins, [] if range is None else [float(v) for v in range]))
    else:
        edges = tuple(bins)
        for d, edge in enumerate(edges):
            _check_edges(points, edge, d)
    flat = None if weight is None else weight.reshape(-1)
    hist = strata.ops.strata._histogram(points, edges, even, flat, density)
    return strata.return_types.histogramdd((hist, edges))


def _check_edges(points: Tensor, bins: Tensor, dim: int) -> None:
    if not isinstance(bins, Tensor):
        raise TypeError(f"histogramdd: bins are numbers or tensors, but got {type(bins).__name__} for dimension {dim}")
    if bins.dim() != 1:
        raise RuntimeError(
            f"histogramdd: bins tensor should have one dimension, but got {bins.dim()} dimensions in the bins tensor "
            f"for dimension {dim}"
        )
    if bins.numel() < 2:
        raise RuntimeError(
            f"histogramdd: bins tensor should have at least 2 elements, but got {bins.numel()} in dimension {dim}"
        )
    if bins.dtype != points.dtype:
        raise RuntimeError(
            "histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{points.dtype} and bins for dimension {dim} with dtype {bins.dtype}"
        )
