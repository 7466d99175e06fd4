"""Losses over one prediction and one target. `reduction`: "mean", "sum" or "none" (a ValueError for another word).

size_average and reduce are PyTorch's retired flags; where one is set, it decides, with a warning. Losses that compare
several inputs are in loss_margin.py.
"""

from __future__ import annotations

import math
import warnings

import strata
from strata import Tensor

from .. import _ops
from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss` reduced as asked."""
    _Reduction.get_enum(reduction)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def _broadcast(input: Tensor, target: Tensor) -> list[Tensor]:
    if target.size() == input.size():
        return [input, target]
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
        "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    return strata.broadcast_tensors(input, target)


def _weighted(loss: Tensor, input: Tensor, weight: Tensor, reduction: str, by_weight: bool = True) -> Tensor:
    """`loss * weight` reduced; the mean divides by the sum of the weights, or by the count where not by_weight."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = loss * weight
    if reduction == "mean" and by_weight:
        return loss.sum() / weight.sum()
    return _reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target) ** 2, times `weight` where given."""
    if has_torch_function_variadic(input, target, weight):
        return overridden(mse_loss, (input, target, weight), locals())
    reduction = _Reduction.resolve(size_average, reduce, reduction)
    expanded, wanted = _broadcast(input, target)
    if weight is not None:
        return _weighted((expanded - wanted).pow(2), input, weight, reduction)
    return _ops.mse_loss(expanded, wanted, _Reduction.get_enum(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, times `weight` where given."""
    if has_torch_function_variadic(input, target, weight):
        return overridden(l1_loss, (input, target, weight), locals())
    reduction = _Reduction.resolve(size_average, reduce, reduction)
    expanded, wanted = _broadcast(input, target)
    if weight is not None:
        return _weighted((expanded - wanted).abs(), input, weight, reduction)
    return _ops.l1_loss(expanded, wanted, _Reduction.get_enum(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d * d / (2 * beta) where d = |input - target| < beta, else d - beta / 2; beta = 0 is l1_loss."""
    if has_torch_function_variadic(input, target):
        return overridden(smooth_l1_loss, (input, target), locals())
    reduction = _Reduction.resolve(size_average, reduce, reduction)
    expanded, wanted = _broadcast(input, target)
    if beta == 0.0:
        return _ops.l1_loss(expanded, wanted, _Reduction.get_enum(reduction))
    return _ops.smooth_l1_loss(expanded, wanted, _Reduction.get_enum(reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d * d / 2 where d = |input - target| < delta, else delta * (d - delta / 2); times `weight` where given."""
    if has_torch_function_variadic(input, target, weight):
        return overridden(huber_loss, (input, target, weight), locals())
    expanded, wanted = _broadcast(input, target)
    if weight is None:
        return _ops.huber_loss(expanded, wanted, _Reduction.get_enum(reduction), delta)
    loss = _ops.huber_loss(expanded, wanted, _Reduction.get_enum("none"), delta)
    return _weighted(loss, input, weight, reduction, by_weight=False)


def _of_one(input: Tensor, target: Tensor) -> Tensor:
    """The class of an input without a batch, which may come as one element; the loss has no dims then."""
    alone = input.dim() == 1 and target.dim() == 1 and target.numel() == 1 and not target.is_floating_point()
    return target.reshape(()) if alone else target


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] * input[target]: input (C), (N, C) or (N, C, d1, ...) of log-probabilities, target of classes.

    The mean divides by the sum of the weights used; targets equal to ignore_index count nothing.
    """
    if has_torch_function_variadic(input, target, weight):
        return overridden(nll_loss, (input, target, weight), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    if input.dim() in (1, 2):
        return _ops.nll_loss(input, _of_one(input, target), weight, number, ignore_index)
    if input.dim() == 4:
        return _ops.nll_loss2d(input, target, weight, number, ignore_index)
    if input.dim() == 0 or input.size(0) != target.size(0) or input.shape[2:] != target.shape[1:]:
        raise ValueError(
            f"nll_loss: expected input (N, C, d1, ...) and target (N, d1, ...), but got input {tuple(input.shape)} "
            f"and target {tuple(target.shape)}"
        )
    batch, classes = input.shape[:2]
    loss = _ops.nll_loss2d(
        input.reshape(batch, classes, 1, -1), target.reshape(batch, 1, -1), weight, number, ignore_index
    )
    return loss.reshape(target.shape) if number == 0 else loss


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """nll_loss of log_softmax(input): input (C), (N, C) or (N, C, d1, ...) of logits.

    target: classes, or probabilities of input's shape. label_smoothing: this share of each target is spread evenly.
    """
    if has_torch_function_variadic(input, target, weight):
        return overridden(cross_entropy, (input, target, weight), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    return _ops.cross_entropy_loss(input, _of_one(input, target), weight, number, ignore_index, label_smoothing)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms not below -100; input in [0, 1].

    ValueError where the sizes differ.
    """
    if has_torch_function_variadic(input, target, weight):
        return overridden(binary_cross_entropy, (input, target, weight), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(strata.broadcast_shapes(target.size(), weight.size()))
    return _ops.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), computed without the logistic function's loss of digits.

    pos_weight multiplies the term of positive targets. ValueError where the sizes differ.
    """
    if has_torch_function_variadic(input, target, weight, pos_weight):
        return overridden(binary_cross_entropy_with_logits, (input, target, weight, pos_weight), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), with input in log-space; log_target: target too.

    reduction "batchmean" divides the sum by the first size, as the divergence's definition does; "mean" divides by
    the number of elements.
    """
    if has_torch_function_variadic(input, target):
        return overridden(kl_div, (input, target), locals())
    if size_average is not None or reduce is not None:
        number = _Reduction.get_enum(_Reduction.legacy_get_string(size_average, reduce))
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size."
                "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
                stacklevel=2,
            )
        number = _Reduction.get_enum("sum" if reduction == "batchmean" else reduction)
    loss = _ops.kl_div(input, target, number, log_target=log_target)
    return loss / input.size(0) if reduction == "batchmean" and input.dim() != 0 else loss


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input where log_input, else input - target * log(input + eps).

    full: adds Stirling's approximation of log(target!) where target > 1.
    """
    if has_torch_function_variadic(input, target):
        return overridden(poisson_nll_loss, (input, target), locals())
    number = _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction))
    return _ops.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target) ** 2 / var) / 2, with var not below eps; full adds log(2 * pi) / 2.

    var: a number, input's shape, or that with the last dimension left out or 1. ValueError for a negative one.
    """
    if has_torch_function_variadic(input, target, var):
        return overridden(gaussian_nll_loss, (input, target, var), locals())
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * strata.ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif var.dim() != input.dim() or any(v not in (n, 1) for v, n in zip(var.size(), input.size(), strict=True)):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with strata.no_grad():  # the limit is a guard, not part of the function that is differentiated
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), with target of 1 and -1."""
    if has_torch_function_variadic(input, target):
        return overridden(soft_margin_loss, (input, target), locals())
    return _ops.soft_margin_loss(input, target, _Reduction.get_enum(_Reduction.resolve(size_average, reduce, reduction)))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the last dimension of -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input)), by input's size there."""
    if has_torch_function_variadic(input, target, weight):
        return overridden(multilabel_soft_margin_loss, (input, target, weight), locals())
    loss = -(target * _ops.log_sigmoid(input) + (1 - target) * _ops.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.size(-1), _Reduction.resolve(size_average, reduce, reduction))


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy of the logits input @ linear_weight^T + linear_bias.

    input: (N, in) or (in). linear_weight: (C, *dims, in); logits are (N, C, *dims). options: accepted; the logits are made
    whole.
    """
    if has_torch_function_variadic(input, linear_weight, target):
        return overridden(linear_cross_entropy, (input, linear_weight, target), locals())
    shape = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = strata.nn.functional.linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    logits = logits.reshape((*input.shape[:-1], *shape))
    index = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=index, reduction=reduction, label_smoothing=label_smoothing
    )
