"""How the operators of layers and losses, and their derivatives, are called once for a whole batch (see _batched_rules.py): what has
images, groups or classes of its own gets those of all elements."""

from __future__ import annotations

import strata
from strata import Tensor

from ._batched import Written, each
from ._batched_rules import _along, _beside, _bound, _folded, _inner, _put, _ranked, _rule, _shifted, rule_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._batched import Level

__all__ = ["rule_of"]


# ---- images: dim 0 of images becomes both
_BACK = {
    1: "upsample_linear1d_backward upsample_nearest1d_backward _upsample_nearest_exact1d_backward",
    2: "upsample_bilinear2d_backward upsample_nearest2d_backward _upsample_nearest_exact2d_backward upsample_bicubic2d_backward "
    "_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward",
    3: "upsample_trilinear3d_backward upsample_nearest3d_backward _upsample_nearest_exact3d_backward",
}


def _images_back(dims: int) -> Any:
    def rule(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
        args, kwargs = _bound(func, args, kwargs)
        grad, output_size, input_size, *rest = args
        if grad.dim() != dims + 2:
            return NotImplemented
        made = func(_folded(level, grad), output_size, [level.size * input_size[0], *input_size[1:]], *rest, **kwargs)
        return made.unflatten(0, (level.size, input_size[0]))

    return rule


for _dims, _text in _BACK.items():
    _put(_text, _images_back(_dims))


# Several tensors with images, each of so many dims (one less: without a dim of images), and what follows.
def _all_images(dims: int) -> Any:
    def rule(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
        args, kwargs = _bound(func, args, kwargs)
        tensors = [a for a in args if isinstance(a, Tensor)]
        if any(t.dim() != tensors[0].dim() for t in tensors) or tensors[0].dim() not in (dims + 1, dims + 2):
            return NotImplemented
        if tensors[0].dim() == dims + 1:
            return func(*(level.whole(a) if isinstance(a, Tensor) else a for a in args), **kwargs)
        made = func(*(_folded(level, a) if isinstance(a, Tensor) else a for a in args), **kwargs)
        return each(made, lambda t: t.unflatten(0, (level.size, tensors[0].shape[0])))

    return rule


for _dims, _text in {
    1: "reflection_pad1d_backward replication_pad1d_backward",
    2: "max_pool2d_with_indices_backward avg_pool2d_backward _adaptive_avg_pool2d_backward adaptive_max_pool2d_backward "
    "fractional_max_pool2d_backward reflection_pad2d_backward replication_pad2d_backward",
    3: "max_pool3d_with_indices_backward avg_pool3d_backward _adaptive_avg_pool3d_backward adaptive_max_pool3d_backward "
    "fractional_max_pool3d_backward reflection_pad3d_backward replication_pad3d_backward",
}.items():
    _put(_text, _all_images(_dims))


# Lines of a first dim, which all that are given have.
@_rule("strata::_weighted_gather strata::_weighted_scatter strata::_gathered_products")
def _weighted(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    made = func(*(_folded(level, a) if isinstance(a, Tensor) else a for a in args), **kwargs)
    return made.unflatten(0, (level.size, args[0].shape[0]))


@_rule("grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward grid_sampler_3d_backward")
def _sampled(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    images = args[0].shape[0]
    made = func(*(_folded(level, a) if isinstance(a, Tensor) else a for a in args), **kwargs)
    return each(made, lambda t: t.unflatten(0, (level.size, images)))


@_rule("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    mask = kwargs.get("attn_mask")
    if level.owns(mask) or (mask is not None and mask.dim() == 4 and mask.shape[0] > 1):
        return NotImplemented
    images = args[0].shape[0]
    found = func(*(_folded(level, a) if isinstance(a, Tensor) else a for a in args), **kwargs)
    return tuple(t.unflatten(0, (level.size, images)) for t in found)


# ---- normalisation: each element's channels beside those of the others
def _apart(level: Level, t: Tensor) -> Tensor:
    return t.unflatten(1, (level.size, t.shape[1] // level.size)).transpose(0, 1)


def _of_channels(level: Level, t: Tensor | None) -> Tensor | None:
    return None if t is None else level.whole(t).flatten()


def _elements(level: Level, t: Tensor | None) -> Tensor | None:
    return None if t is None else t.unflatten(0, (level.size, t.shape[0] // level.size))


@_rule("native_batch_norm")
def _batch_norm(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, weight, bias, mean, spread, training, *rest = args
    written = [t for t in (mean, spread) if training and t is not None]
    if not all(map(level.owns, written)):
        raise Written
    if not all(t.value.is_contiguous() for t in written):
        return NotImplemented
    made, *statistics = func(_beside(level, x), *(_of_channels(level, t) for t in (weight, bias, mean, spread)), training, *rest)
    return _apart(level, made), *(_elements(level, t) if t.numel() else t.unsqueeze(0).expand(level.size, 0) for t in statistics)


@_rule("native_batch_norm_backward")
def _batch_norm_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, x, *channels = args[:7]
    by_x, *others = func(_beside(level, grad), _beside(level, x), *(_of_channels(level, t) for t in channels), *args[7:])
    return None if by_x is None else _apart(level, by_x), *(_elements(level, t) for t in others)


@_rule("native_group_norm")
def _group_norm(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, weight, bias, n, channels, positions, groups, eps = args
    made = func(
        _beside(level, x), _of_channels(level, weight), _of_channels(level, bias), n, channels * level.size, positions, groups * level.size, eps
    )
    return tuple(_apart(level, t) for t in made)


@_rule("native_group_norm_backward")
def _group_norm_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, x, mean, deviation, weight, n, channels, positions, groups, mask = args
    beside = [_beside(level, t) for t in (grad, x, mean, deviation)]
    by_x, *others = func(*beside, _of_channels(level, weight), n, channels * level.size, positions, groups * level.size, mask)
    return None if by_x is None else _apart(level, by_x), *(_elements(level, t) for t in others)


@_rule("native_layer_norm_backward")
def _layer_norm_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, x, shape, mean, deviation, weight, bias, mask = args
    if level.owns(weight):
        return NotImplemented
    grad, x, mean, deviation = (level.whole(t) for t in (grad, x, mean, deviation))
    by_x = func(grad, x, shape, mean, deviation, weight, None, [mask[0], False, False])[0]
    outer = list(range(1, x.dim() - len(shape)))
    total = lambda t: t.sum(outer) if outer else t  # noqa: E731
    by_weight = total(grad * (x - mean) * deviation).to(weight.dtype) if mask[1] and weight is not None else None
    return by_x, by_weight, total(grad).to(bias.dtype) if mask[2] and bias is not None else None


# ---- losses
def _reduced_loss(level: Level, losses: Tensor, reduction: int) -> Tensor:
    if reduction == 0 or losses.dim() == 1:
        return losses
    return losses.flatten(1).mean(1) if reduction == 1 else losses.flatten(1).sum(1)


@_rule("mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss")
def _loss(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    names = [a.name for a in func._schema.arguments]
    at, rank = names.index("reduction"), max(args[0].dim(), args[1].dim())
    reduction, args[at] = args[at], 0
    if kwargs or not (level.owns(args[0]) or level.owns(args[1])):
        return NotImplemented
    made = func(*(_ranked(a, rank) if level.owns(a) else a for a in args))
    return _reduced_loss(level, made, reduction)


# One class of each element's several: those of all elements as so many more lines, not reduced.
def _lines(level: Level, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, tuple]:
    x, target = level.whole(x), level.whole(target)
    if x.dim() == 2:
        return x, target, (level.size,)
    return x.flatten(0, 1), target.flatten(0, 1), (level.size, x.shape[1])


def _weights(target: Tensor, weight: Tensor | None, ignored: int, like: Tensor) -> Tensor:
    """The sum of each element's weights, (batch,)."""
    held = target != ignored
    if weight is None:
        return held.flatten(1).sum(1).to(like.dtype) if target.dim() > 1 else held.to(like.dtype)
    each_weight = weight.index_select(0, target.clamp(0, weight.shape[0] - 1).flatten()).reshape(target.shape) * held
    return each_weight.flatten(1).sum(1) if target.dim() > 1 else each_weight


@_rule("nll_loss_forward nll_loss2d_forward")
def _classes(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, target, weight, reduction, ignored = args
    if level.owns(weight):
        return NotImplemented
    rows, classes, shape = _lines(level, x, target)
    losses = func(rows, classes, weight, 0, ignored)[0].unflatten(0, shape)
    if reduction == 0:
        return losses, losses.new_zeros(level.size)
    total = _weights(level.whole(target), weight, ignored, rows)
    summed = losses.flatten(1).sum(1) if losses.dim() > 1 else losses
    return summed / total if reduction == 1 else summed, total


@_rule("nll_loss_backward")
def _classes_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, x, target, weight, reduction, ignored, total = args
    if level.owns(weight):
        return NotImplemented
    rows, classes, shape = _lines(level, x, target)
    grad = level.whole(grad)
    if reduction == 1:
        grad = grad / level.whole(total)
    if reduction:
        grad = grad.reshape(level.size, *[1] * target.dim()).expand(level.size, *target.shape)
    made = func(grad.reshape(classes.shape), rows, classes, weight, 0, ignored, rows.new_zeros(()))
    return made.unflatten(0, shape)


# ---- places
_put("scatter_reduce.two", _along("dim"))
_put("diagonal_copy", _along("dim1", "dim2"))
_put("strata::_check_info one_hot", _inner(0))


@_rule("embedding_dense_backward")
def _embedding_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, places, rows, padding, by_count = args
    grad, places = level.whole(grad), level.whole(places)
    if padding >= 0:
        grad = grad.masked_fill((places == padding).unsqueeze(-1), 0)
    first = strata.arange(0, level.size * rows, rows, device=places.device, dtype=places.dtype)
    places = places + first.reshape(-1, *[1] * (places.dim() - 1))
    return func(grad, places, level.size * rows, -1, by_count).unflatten(0, (level.size, rows))


@_rule("index_add index_copy index_fill.int_Scalar")
def _at_places(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, dim, index, source = args
    if level.owns(index) or x.dim() == 0 or (isinstance(source, Tensor) and source.dim() != x.dim()):
        return NotImplemented
    return func(level.whole(x), _shifted(dim, x.dim()), index, level.whole(source) if isinstance(source, Tensor) else source, **kwargs)


@_rule("bucketize.Tensor")
def _bucketed(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return NotImplemented if level.owns(args[1]) else func(args[0].value, *args[1:], **kwargs)


@_rule("searchsorted.Tensor")
def _searched(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    ordered, x = args
    if kwargs["sorter"] is not None or x.dim() == 0 or ordered.dim() != x.dim():
        return NotImplemented
    return func(level.whole(ordered), level.whole(x), **kwargs)


@_rule("trace")
def _trace(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return args[0].value.diagonal(0, 1, 2).sum(-1) if args[0].dim() == 2 else NotImplemented


@_rule("diagonal_scatter")
def _diagonal_put_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, source, offset, *dims = args
    return func(level.whole(x), level.whole(source), offset, *_shifted(dims, x.dim()))


# Matrices, or batches of them of as many dims.
@_rule("linalg_solve_ex linalg_solve_triangular cholesky_solve strata::_distances strata::_distances_backward")
def _matrices(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    ranks = {a.dim() for a in args if isinstance(a, Tensor)}
    if len(ranks) > 1 or min(ranks) < 2:
        return NotImplemented
    return func(*(level.whole(a) if isinstance(a, Tensor) else a for a in args), **kwargs)


@_rule("new_zeros new_ones new_empty new_full")
def _new(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(args[0].value, [level.size, *args[1]], *args[2:], **kwargs)
