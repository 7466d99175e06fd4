"""How operators are called once for a whole batch, whose elements lie along dim 0 (_batched.py).

A rule gets the level, the operator, and its arguments, of which some are BatchedTensors; it gives the operator's results with all
elements along dim 0, or NotImplemented where this call is to be made for one element after the other.
"""

from __future__ import annotations

import functools

import strata
from strata import Tensor

from ._batched import BatchedTensor, each, facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._batched import Level

    Rule = Callable[[Level, Any, tuple, dict], Any]

__all__ = ["rule_of"]

_RULES: dict[str, Rule] = {}


def _names(text: str) -> list[str]:
    return [name if "::" in name else f"aten::{name}" for name in text.split()]


def _put(text: str, rule: Rule) -> None:
    _RULES.update(dict.fromkeys(_names(text), rule))


def _rule(text: str) -> Callable[[Rule], Rule]:
    def put(rule: Rule) -> Rule:
        _put(text, rule)
        return rule

    return put


@functools.cache
def rule_of(func: Any) -> Rule | None:
    """The rule of an operator, if there is one."""
    schema = func._schema
    name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    if name in _RULES:
        return _RULES[name]
    if any(a.is_out for a in schema.arguments):
        return None
    info = facts(func)
    if info is None or info.kind != "pointwise" or "draws" in info.acts or any("[]" in a.type for a in schema.arguments):
        return None
    return _elementwise


def _bound(func: Any, args: tuple, kwargs: dict) -> tuple[list, dict]:
    """All arguments, defaults too: positional ones as a list, and those that go by name alone."""
    positional, named = list(args), dict(kwargs)
    for i, a in enumerate(func._schema.arguments):
        if a.kwarg_only:
            named.setdefault(a.name, a.default_value)
        elif i >= len(positional):
            positional.append(named.pop(a.name, a.default_value))
    return positional, named


def _ranked(t: BatchedTensor, rank: int) -> Tensor:
    """The batch, each element of at least so many dims, new ones first."""
    missing = rank - t.dim()
    return t.value if missing <= 0 else t.value[(slice(None), *[None] * missing)]


def _kind(t: Tensor) -> int:
    return 0 if t.dtype == strata.bool else 3 if t.is_complex() else 2 if t.is_floating_point() else 1


def _elementwise(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    mapped = [t for t in tensors if level.owns(t)]
    rank = max(t.dim() for t in tensors)
    # A batch of numbers takes part in promotion as a tensor of dims does; one number only where its kind of dtype is a higher one.
    if any(t.dim() == 0 for t in mapped) and rank > 0 and len({t.dtype for t in tensors}) > len({_kind(t) for t in tensors}):
        return NotImplemented
    if func._schema.is_mutable:
        if not level.owns(args[0]) or args[0].dim() < rank:
            return NotImplemented
    numbers = rank == 0 and facts(func).kind == "pointwise"  # all of them are: those that are the same for all get a dim, too
    change = lambda t: _ranked(t, rank) if level.owns(t) else t.unsqueeze(0) if numbers else t  # noqa: E731
    return func(*(each(a, change) for a in args), **{name: each(a, change) for name, a in kwargs.items()})


_put(
    "celu gelu gelu_backward nan_to_num pow.Tensor_Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor igamma igammac polygamma "
    "nextafter isclose copy_ native_dropout_backward",
    _elementwise,
)


# ---- what keeps to the last dims, of which an element needs so many
def _inner(dims: int) -> Rule:
    def rule(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
        if any(level.owns(a) for a in (*args[1:], *kwargs.values())) or not level.owns(args[0]) or args[0].dim() < dims:
            return NotImplemented
        return func(args[0].value, *args[1:], **kwargs)

    return rule


for _dims, _text in {
    0: "detach alias view_as_real zero_ fill_.Scalar fill.Scalar",
    1: "view_as_complex native_layer_norm rms_norm _fused_rms_norm",
    2: "tril triu linalg_qr _linalg_svd _linalg_eigh linalg_cholesky_ex linalg_inv_ex _linalg_det _linalg_slogdet linalg_eig "
    "_linalg_eigvals linalg_lu_factor_ex cholesky_inverse linalg_matrix_exp geqrf",
    3: "pixel_shuffle pixel_unshuffle",
}.items():
    _put(_text, _inner(_dims))


@_rule("constant_pad_nd")
def _padded(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return _inner(len(args[1]) // 2)(level, func, args, kwargs)


# The order of an element's dims in memory is that of the batch's, in which its own dim may lie anywhere.
@_rule("clone _to_copy empty_like")
def _copied(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    if len(args) > 1:
        return NotImplemented
    wanted = kwargs.get("memory_format")
    value, kwargs = args[0].value, {**kwargs, "memory_format": strata.preserve_format}
    if wanted is None or wanted == strata.preserve_format:
        return func(value, **kwargs)
    if wanted == strata.contiguous_format:
        return func(value, **{**kwargs, "memory_format": wanted})
    return func(value.movedim(2, -1).contiguous().movedim(-1, 2), **kwargs)


@_rule(
    "transpose_ t_ squeeze_ squeeze_.dim squeeze_.dims unsqueeze_ swapaxes_ swapdims_ as_strided_ resize_ resize_as_ set_.source_Tensor "
    "strata::_become"
)
def _reshaped(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    raise RuntimeError(
        f"vmap: {func} changes the sizes of its argument itself, which an element of a batch cannot: use the function that gives another "
        "tensor (unsqueeze for unsqueeze_)"
    )


# ---- dims by number
@_rule(
    "sum.dim_IntList mean.dim nansum prod.dim_int amax amin aminmax max.dim min.dim argmax argmin any.dim any.dims all.dim all.dims "
    "var.correction std.correction var_mean.correction std_mean.correction logsumexp linalg_vector_norm norm.ScalarOpt_dim "
    "median.dim nanmedian.dim mode kthvalue"
)
def _reduced(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    place = _Place(func, args, kwargs)
    dim = place["dim"]
    if any(level.owns(a) for a in args[1:]):
        return NotImplemented
    value, rank = args[0].value, args[0].dim()
    if rank == 0:
        value, rank = value.unsqueeze(1), 1
        place["keepdim"] = False
        dim = 0 if isinstance(dim, int) or func._schema.name in {"aten::argmax", "aten::argmin", "aten::aminmax"} else [0]
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        name = func._schema.name
        if name in {"aten::argmax", "aten::argmin", "aten::aminmax"}:  # over all elements: one dim
            if place["keepdim"]:
                return NotImplemented
            value, dim, rank = value.flatten(1), 0, 1
        elif name in {"aten::any", "aten::all"} and dim is not None:
            return NotImplemented  # over no dims
        else:
            dim = list(range(rank))
    place["dim"] = _shifted(dim, rank)
    return func(value, *place.positional(), **place.named)


class _Place(dict):
    """The arguments after the first one by their names, to be called with in order."""

    def __init__(self, func: Any, args: list, kwargs: dict) -> None:
        self.names = [a.name for a in func._schema.arguments if not a.kwarg_only][1:]
        super().__init__(zip(self.names, args[1:], strict=True))
        self.keywords = [a.name for a in func._schema.arguments if a.kwarg_only]
        self.update(kwargs)

    def positional(self) -> list:
        return [self[name] for name in self.names]

    @property
    def named(self) -> dict:
        return {name: self[name] for name in self.keywords}


def _shifted(dim: Any, rank: int) -> Any:
    """A dim, or several, of an element of that many dims, in the batch."""
    if isinstance(dim, (list, tuple)):
        return [_shifted(d, rank) for d in dim]
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank + 1


_WHOLE = {"sum": "dim_IntList", "mean": "dim", "any": "dims", "all": "dims", "max": "amax", "min": "amin"}


@_rule("sum mean any all max min prod")
def _reduced_whole(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    t, name = args[0], func._schema.name.removeprefix("aten::")
    value = t.value if t.dim() else t.value.unsqueeze(1)
    if name == "prod":
        return strata.ops.aten.prod.dim_int(value.flatten(1), 1, **kwargs)
    dims = list(range(1, value.dim()))
    if name in {"max", "min"}:
        return getattr(strata.ops.aten, _WHOLE[name]).default(value, dims)
    return getattr(getattr(strata.ops.aten, name), _WHOLE[name])(value, dims, **kwargs)


# Operands of one shape, along dims that have these names; `new`: the result has one more, whose place they say.
def _along(*names: str, new: bool = False) -> Rule:
    def rule(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
        args, kwargs = _bound(func, args, kwargs)
        place = _Place(func, args, kwargs)
        tensors = [a for a in args if isinstance(a, Tensor)]
        rank = tensors[0].dim()
        if (rank == 0 and not new) or any(t.dim() != rank for t in tensors):
            return NotImplemented
        for name in names:
            place[name] = _shifted(place[name], rank + new)
        changed = [level.whole(v) if isinstance(v, Tensor) else v for v in place.positional()]
        return func(level.whole(args[0]), *changed, **place.named)

    return rule


for _text, _made in {
    "softmax.int _softmax log_softmax.int _log_softmax cumsum cumprod cummax cummin logcumsumexp sort sort.stable topk glu select.int "
    "slice.Tensor unbind.int split.Tensor split_with_sizes narrow squeeze.dim squeeze.dims _softmax_backward_data "
    "_log_softmax_backward_data gather scatter_add scatter.src scatter.value slice_scatter _fft_c2c _fft_r2c _fft_c2r": _along("dim"),
    "flip rot90": _along("dims"),
    "transpose.int": _along("dim0", "dim1"),
    "diagonal": _along("dim1", "dim2"),
    "unfold": _along("dimension"),
    "unsqueeze": _along("dim", new=True),
    "diag_embed": _along("dim1", "dim2", new=True),
}.items():
    _put(_text, _made)


@_rule("permute")
def _permuted(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return args[0].value.permute(0, *_shifted(args[1], args[0].dim())) if args[0].dim() == len(args[1]) else NotImplemented


@_rule("roll")
def _roll(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    if not args[2]:
        return NotImplemented
    return func(args[0].value, args[1], _shifted(args[2], args[0].dim()))


@_rule("select_backward slice_backward unfold_backward")
def _put_back(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(args[0].value, [level.size, *args[1]], _shifted(args[2], len(args[1])), *args[3:])


@_rule("select_scatter")
def _select_scatter(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(level.whole(args[0]), level.whole(args[1]), _shifted(args[2], args[0].dim()), args[3])


@_rule("t")
def _turned(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    if args[0].dim() > 2:
        return NotImplemented
    return args[0].value.transpose(1, 2) if args[0].dim() == 2 else strata.ops.aten.alias.default(args[0].value)


@_rule("squeeze")
def _squeezed(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return args[0].value.squeeze([d + 1 for d, n in enumerate(args[0].shape) if n == 1])


# ---- sizes
@_rule("view reshape")
def _viewed(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(args[0].value, [level.size, *args[1]])


@_rule("_unsafe_view")
def _viewed_or_copied(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return args[0].value.reshape(level.size, *args[1])


@_rule("expand")
def _expanded(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(_ranked(args[0], len(args[1])), [level.size, *args[1]], **kwargs)


@_rule("repeat")
def _repeated(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    return func(_ranked(args[0], len(args[1])), [1, *args[1]]) if len(args[1]) >= args[0].dim() else NotImplemented


@_rule("cat stack")
def _joined(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    parts, dim = args
    rank = parts[0].dim()
    if any(p.dim() != rank for p in parts) or (rank == 0 and func._schema.name == "aten::cat"):
        return NotImplemented
    return func([level.whole(p) for p in parts], _shifted(dim, rank + (func._schema.name == "aten::stack")))


# ---- products
def _matrix(level: Level, t: Tensor) -> Tensor:
    return t.value if level.owns(t) else t


@_rule("mm bmm")
def _product(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    a, b = args
    dims = 2 if func._schema.name == "aten::mm" else 3
    if a.dim() != dims or b.dim() != dims or a.dtype != b.dtype or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return NotImplemented
    if dims == 2 and not level.owns(a):  # one product for all elements: (k, B n) behind a
        return strata.matmul(a, b.value.transpose(0, 1).flatten(1)).unflatten(1, (level.size, b.shape[1])).transpose(0, 1)
    return strata.matmul(_matrix(level, a), _matrix(level, b))


@_rule("mv")
def _product_vector(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    a, b = args
    if a.dim() != 2 or b.dim() != 1 or a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        return NotImplemented
    if not level.owns(a):
        return strata.matmul(b.value, a.t())
    return strata.matmul(a.value, _matrix(level, b).unsqueeze(-1)).squeeze(-1)


@_rule("dot vdot")
def _inner_product(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    a, b = args
    if a.dim() != 1 or b.dim() != 1 or a.dtype != b.dtype or a.shape != b.shape:
        return NotImplemented
    a, b = level.whole(a), level.whole(b)
    a = a.conj() if func._schema.name == "aten::vdot" else a
    return strata.matmul(a.unsqueeze(1), b.unsqueeze(2)).flatten()


@_rule("addmm addmv baddbmm")
def _added_product(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    start, a, b = args
    if kwargs["beta"] == 0 or len({t.dtype for t in args}) > 1 or not (level.owns(a) or level.owns(b)):
        return NotImplemented
    name = {"aten::addmm": "mm", "aten::addmv": "mv", "aten::baddbmm": "bmm"}[func._schema.name]
    made = rule_of(getattr(strata.ops.aten, name).default)(level, getattr(strata.ops.aten, name).default, (a, b), {})
    if made is NotImplemented:
        return NotImplemented
    made = made if kwargs["alpha"] == 1 else made * kwargs["alpha"]
    start = _ranked(start, made.dim() - 1) if level.owns(start) else start
    return made + (start if kwargs["beta"] == 1 else start * kwargs["beta"])


# ---- batches that there are already: dim 0 of images becomes both
def _folded(level: Level, t: Tensor) -> Tensor:
    return level.whole(t).flatten(0, 1)


_IMAGES = {
    1: "upsample_linear1d upsample_nearest1d _upsample_nearest_exact1d reflection_pad1d replication_pad1d",
    2: "max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d adaptive_max_pool2d upsample_bilinear2d upsample_nearest2d "
    "_upsample_nearest_exact2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa reflection_pad2d "
    "replication_pad2d",
    3: "max_pool3d_with_indices avg_pool3d _adaptive_avg_pool3d adaptive_max_pool3d upsample_trilinear3d upsample_nearest3d "
    "_upsample_nearest_exact3d reflection_pad3d replication_pad3d",
}


def _images(dims: int) -> Rule:
    def rule(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
        if any(level.owns(a) for a in args[1:]):
            return NotImplemented
        if args[0].dim() == dims + 1:
            return func(args[0].value, *args[1:], **kwargs)
        if args[0].dim() != dims + 2:
            return NotImplemented
        shape = (level.size, args[0].shape[0])
        return each(func(_folded(level, args[0]), *args[1:], **kwargs), lambda t: t.unflatten(0, shape))

    return rule


for _dims, _text in _IMAGES.items():
    _put(_text, _images(_dims))


@_rule("convolution")
def _convolution(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    x, weight, bias, *rest = args
    if x.dim() != weight.dim():
        return NotImplemented
    shape = (level.size, x.shape[0])
    if not level.owns(weight) and not level.owns(bias):
        return func(_folded(level, x), weight, bias, *rest).unflatten(0, shape)
    # Each element's channels are groups of their own.
    of_bias = None if bias is None else level.whole(bias).flatten()
    made = func(_beside(level, x), _folded(level, weight), of_bias, *rest[:-1], rest[-1] * level.size)
    return made.unflatten(1, (level.size, made.shape[1] // level.size)).transpose(0, 1)


def _beside(level: Level, images: Tensor) -> Tensor:
    return level.whole(images).transpose(0, 1).flatten(1, 2)


@_rule("convolution_backward")
def _convolution_backward(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    grad, x, weight, bias_sizes, *rest, groups, mask = args
    if x.dim() != weight.dim():
        return NotImplemented
    sizes = None if bias_sizes is None else [level.size * bias_sizes[0]]
    by_x, by_weight, by_bias = func(_beside(level, grad), _beside(level, x), _folded(level, weight), sizes, *rest, groups * level.size, mask)
    return (
        by_x if by_x is None else by_x.unflatten(1, (level.size, x.shape[1])).transpose(0, 1),
        by_weight if by_weight is None else by_weight.unflatten(0, (level.size, weight.shape[0])),
        by_bias if by_bias is None else by_bias.unflatten(0, (level.size, bias_sizes[0])),
    )


@_rule("_scaled_dot_product_flash_attention_for_cpu")
def _attention(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    args, kwargs = _bound(func, args, kwargs)
    query, key, value, *rest = args
    mask = kwargs.get("attn_mask")
    if query.dim() != 4 or level.owns(mask) or (mask is not None and mask.dim() == 4 and mask.shape[0] > 1):
        return NotImplemented
    found = func(*(_folded(level, t) for t in (query, key, value)), *rest, **kwargs)
    return tuple(t.unflatten(0, (level.size, query.shape[0])) for t in found)


# ---- places
@_rule("embedding")
def _embedding(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    return NotImplemented if level.owns(args[0]) else func(args[0], args[1].value, *args[2:], **kwargs)


@_rule("index_select")
def _index_select(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    t, dim, index = args
    if level.owns(index) or t.dim() == 0:
        return NotImplemented
    return func(t.value, _shifted(dim, t.dim()), index)


@_rule("index.Tensor")
def _indexed(level: Level, func: Any, args: tuple, kwargs: dict) -> Any:
    t, places = args
    given = [p for p in places if p is not None]
    if any(p.dtype in {strata.bool, strata.uint8} for p in given) or any(p is None for p in places):
        return NotImplemented
    rank = max(p.dim() for p in given)
    places = [_ranked(p, rank) if level.owns(p) else p for p in places]
    if not level.owns(t):
        return func(t, places)
    if not any(level.owns(p) for p in args[1]):
        return func(t.value, [None, *places])
    batch = strata.arange(level.size, device=t.device).reshape(-1, *[1] * rank)
    return func(t.value, [batch, *places])
