"""Losses over several classes at once. `reduction` and the retired flags are as in loss.py."""

from __future__ import annotations

from strata import Tensor

from .. import _ops
from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the classes c other than the target t of max(0, margin - x[t] + x[c]) ** p, times weight[t].

    input (N, C) or (C), target (N) or one class. ValueError for p other than 1 and 2, or a weight that is not 1-d.
    """
    if has_torch_function_variadic(input, target, weight):
        return overridden(multi_margin_loss, (input, target, weight), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _ops.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum over target classes t and other classes c of max(0, 1 - x[t] + x[c]), over C.

    input (N, C) or (C), target of the same shape: classes, up to the first -1.
    """
    if has_torch_function_variadic(input, target):
        return overridden(multilabel_margin_loss, (input, target), locals())
    return _ops.multilabel_margin_loss(
        input, target, _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    )
