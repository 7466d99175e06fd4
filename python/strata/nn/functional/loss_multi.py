"""Losses over several classes at once. `reduction` and the retired flags are as in loss.py."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden
from .loss import _reduced


def _rows(name: str, input: Tensor, reduction: str) -> Tensor:
    """input as (N, C). RuntimeError for other shapes, NotImplementedError for other dtypes than float32 and float64, to which
    autocast converts."""
    _Reduction.get_enum(reduction)
    if input.dtype in (strata.bfloat16, strata.float16) and strata.is_autocast_enabled(input.device.type):
        input = input.float()
    if input.dim() > 2 or (input.dim() == 2 and input.size(1) == 0):
        raise RuntimeError(f"{name}: expected input of shape (N, C) or (C) with C > 0, got {tuple(input.shape)}")
    if input.dtype not in (strata.float32, strata.float64):
        raise NotImplementedError(f"{name} is not implemented for {input.dtype}; convert the input to float32 first")
    return input if input.dim() == 2 else input.reshape(1, -1)


def _unrowed(loss: Tensor, scalar: bool, reduction: str) -> Tensor:
    return loss.reshape(()) if scalar and reduction == "none" else _reduced(loss, reduction)


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
    reduction = _Reduction.resolve(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows = _rows("multi_margin_loss", input, reduction)
    if target.dim() > 1 or target.numel() != rows.size(0):
        raise RuntimeError(f"multi_margin_loss: expected target of shape ({rows.size(0)}), got {tuple(target.shape)}")
    index = target.reshape(-1, 1)
    violation = (margin - rows.gather(1, index) + rows).relu()
    if p == 2:
        violation = violation * violation
    if weight is not None:
        violation = violation * weight[index]
    # The target's own class contributes nothing.
    return _unrowed(violation.scatter(1, index, 0.0).mean(1), target.dim() == 0, reduction)


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
    reduction = _Reduction.resolve(size_average, reduce, reduction)
    rows = _rows("multilabel_margin_loss", input, reduction)
    if target.shape != input.shape:
        raise RuntimeError(
            f"multilabel_margin_loss: expected target of shape {tuple(input.shape)}, got {tuple(target.shape)}"
        )
    classes = target.reshape(rows.shape)
    given = (classes < 0).cumsum(1) == 0
    index = classes.masked_fill(~given, 0)
    is_target = strata.zeros_like(index).scatter_add(1, index, given.long()) > 0
    pairs = given.unsqueeze(2) & ~is_target.unsqueeze(1)
    violation = (1 - rows.gather(1, index).unsqueeze(2) + rows.unsqueeze(1)).relu()
    loss = (violation * pairs).sum((1, 2)) / rows.size(1)
    return _unrowed(loss, input.dim() < 2, reduction)
