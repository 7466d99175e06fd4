"""Losses that compare two or three inputs. `reduction` and the retired flags are as in loss.py."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _ops
from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden
from .distance import pairwise_distance
from .loss import _reduced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1."""
    if has_torch_function_variadic(input1, input2, target):
        return overridden(cosine_embedding_loss, (input1, input2, target), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    return _ops.cosine_embedding_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    if has_torch_function_variadic(input, target):
        return overridden(hinge_embedding_loss, (input, target), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    return _ops.hinge_embedding_loss(input, target, margin, number)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin). RuntimeError where the numbers of dimensions differ."""
    if has_torch_function_variadic(input1, input2, target):
        return overridden(margin_ranking_loss, (input1, input2, target), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _ops.margin_ranking_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), p-norms along the last dimension.

    swap: the negative distance is the smaller one of those to anchor and to positive. ValueError for margin <= 0.
    """
    if has_torch_function_variadic(anchor, positive, negative):
        return overridden(triplet_margin_loss, (anchor, positive, negative), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    _check_margin(margin)
    return _ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with another distance. RuntimeError where the numbers of dimensions differ."""
    if has_torch_function_variadic(anchor, positive, negative):
        return overridden(triplet_margin_with_distance_loss, (anchor, positive, negative), locals())
    _check_margin(margin)
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = strata.minimum(to_negative, distance(positive, negative))
    return _reduced((margin + to_positive - to_negative).clamp_min(0), reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
