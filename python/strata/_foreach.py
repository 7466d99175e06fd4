"""Operators over lists of tensors, PyTorch's `_foreach_*`: each tensor's result is that of the operator of one tensor. A name that
ends in an underscore writes its first list, and gives its tensors; all give a list. RuntimeError where lists differ in length."""

from __future__ import annotations

import strata
from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from strata import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin "
    "sinh sqrt tan tanh trunc"
)
_BINARY = "add sub mul div pow maximum minimum clamp_max clamp_min"
_IN_TABLE = {"add_": _C._functions._foreach_add_, "sub_": _C._functions._foreach_sub_, "mul_": _C._functions._foreach_mul_}


def _list(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}: expected self to be a list or tuple of Tensors, got {type(tensors).__name__}")
    found = list(tensors)
    if not found:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    for at, tensor in enumerate(found):
        if not isinstance(tensor, strata.Tensor):
            raise TypeError(f"{name}: expected self to be a list or tuple of Tensors, got {type(tensor).__name__} at {at}")
    return found


def _others(name: str, tensors: list[Tensor], other: Any) -> list:
    """One for each tensor, of a list, or of what is for all."""
    if not isinstance(other, (list, tuple)):
        return [other] * len(tensors)
    if len(other) != len(tensors):
        if all(isinstance(o, strata.Tensor) for o in other):
            raise RuntimeError(f"{name}: Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}")
        raise RuntimeError(f"{name}: Tensor list must have same number of elements as scalar list, got {len(tensors)} and {len(other)}")
    return list(other)


def _each(function: str, name: str) -> Callable:
    """The operator of one tensor; maximum and minimum take numbers here, as clamp does."""
    if function.startswith(("maximum", "minimum")):
        number = getattr(strata.Tensor, ("clamp_min" if function[1] == "a" else "clamp_max") + "_" * name.endswith("_"))
        extreme = strata.maximum if function[1] == "a" else strata.minimum

        def apply(t: Tensor, other: Any) -> Tensor:
            if not isinstance(other, strata.Tensor):
                return number(t, other)
            return t.copy_(extreme(t, other)) if name.endswith("_") else extreme(t, other)

        return apply
    return getattr(strata.Tensor, function)


def _plain(tensor: Tensor, *others: Any) -> bool:
    """Whether nothing can be refused of them: floats that lie densely, with numbers and with others of their own kind."""
    return tensor.dtype.is_floating_point and tensor.is_contiguous() and all(
        isinstance(o, (int, float)) or (isinstance(o, strata.Tensor) and o.shape == tensor.shape and o.dtype == tensor.dtype) for o in others
    )


def _like(tensor: Tensor) -> Tensor:
    """What is written in its stead: elements that share a place share it there, too."""
    if tensor.is_contiguous():
        return tensor.detach().clone()
    return strata.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _applied(function: str, rows: Iterable[tuple], apply: Callable) -> list[Tensor]:
    """Of every row what is applied to it. In place, what may be refused is tried on copies before the first is written."""
    rows = list(rows)
    try:
        if function.endswith("_"):
            for tensor, *others in rows[1:]:
                if tensor.requires_grad and tensor.is_leaf and strata.is_grad_enabled():
                    raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
                if not _plain(tensor, *others):
                    apply(_like(tensor), *others)
        return [apply(*row) for row in rows]
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if (name := f"_foreach_{function}") in str(error) or type(error).__module__ != "builtins":
            raise
        raise type(error)(f"{name}: {error}") from None


def _unary(function: str) -> Callable:
    name = f"_foreach_{function}"
    method = getattr(strata.Tensor, function)

    def each(self: Sequence[Tensor]) -> list[Tensor]:
        return _applied(function, zip(_list(name, self)), method)

    return each


def _in_table(function: str, other: Any) -> bool:
    """Whether the table has that operator in place with such another operand."""
    if isinstance(other, (list, tuple)):
        return function != "mul_" and all(isinstance(o, strata.Tensor) for o in other)
    return function == "mul_" or not isinstance(other, strata.Tensor)


def _binary(function: str) -> Callable:
    name = f"_foreach_{function}"
    method, whole = _each(function, name), _IN_TABLE.get(function)

    def each(self: Any, other: Any, **alpha: Any) -> list[Tensor]:
        if whole is not None and _in_table(function, other):
            tensors = _list(name, self)
            whole(tensors, other, **alpha)
            return tensors
        if function == "pow" and not isinstance(self, (list, tuple)):
            return [strata.pow(self, exponent) for exponent in _list(name, other)]
        tensors = _list(name, self)
        return _applied(function, zip(tensors, _others(name, tensors, other), strict=True), lambda t, o: method(t, o, **alpha))

    return each


def _lerp(function: str) -> Callable:
    name = f"_foreach_{function}"
    method = getattr(strata.Tensor, function)

    def each(self: Sequence[Tensor], tensors1: Sequence[Tensor], weight: Any) -> list[Tensor]:
        tensors = _list(name, self)
        rows = zip(tensors, _others(name, tensors, tensors1), _others(name, tensors, weight), strict=True)
        return _applied(function, rows, method)

    return each


def _fused(function: str) -> Callable:
    """addcmul and addcdiv; `value` is a number for all, numbers, or a tensor of them."""
    name = f"_foreach_{function}"
    method = getattr(strata.Tensor, function)

    def each(self: Sequence[Tensor], tensor1: Sequence[Tensor], tensor2: Sequence[Tensor], value: Any = 1, *, scalars: Any = None) -> list[Tensor]:
        tensors, value = _list(name, self), value if scalars is None else scalars
        if isinstance(value, strata.Tensor):
            if value.dim() != 1:
                raise RuntimeError(f"{name}: Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
            value = value.tolist()
        rows = zip(tensors, *(_others(name, tensors, other) for other in (tensor1, tensor2, value)), strict=True)
        return _applied(function, rows, lambda t, a, b, v: method(t, a, b, value=v))

    return each


def _foreach_zero_(self: Sequence[Tensor]) -> list[Tensor]:
    """Fills every tensor with zeros."""
    return [t.zero_() for t in _list("_foreach_zero_", self)]


def _foreach_clone(self: Sequence[Tensor], *, memory_format: Any = None) -> list[Tensor]:
    """A copy of every tensor."""
    return [t.clone() if memory_format is None else t.clone(memory_format=memory_format) for t in _list("_foreach_clone", self)]


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> list[Tensor]:
    """Copies the i-th of src to the i-th tensor."""
    tensors = _list("_foreach_copy_", self)
    rows = zip(tensors, _others("_foreach_copy_", tensors, src), strict=True)
    return _applied("copy_", rows, lambda t, s: t.copy_(s, non_blocking))


def _foreach_norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> list[Tensor]:
    """The vector norm of every tensor."""
    return [strata.linalg.vector_norm(t, ord, dtype=dtype) for t in _list("_foreach_norm", self)]


def _foreach_max(self: Sequence[Tensor]) -> list[Tensor]:
    """The largest element of every tensor."""
    return [t.max() for t in _list("_foreach_max", self)]


def _kinds() -> dict[str, Callable]:
    """How each operator that exists in place, too, is made."""
    return {
        **dict.fromkeys(_UNARY.split(), _unary), **dict.fromkeys(_BINARY.split(), _binary), "lerp": _lerp, "addcmul": _fused, "addcdiv": _fused,
    }  # fmt: skip


def __getattr__(name: str) -> Callable:
    one = name.removeprefix("_foreach_")
    kind = _kinds().get(one.removesuffix("_"))
    if kind is None or one == name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = globals()[name] = kind(one)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Tensor.{one} of every tensor" + (", in place." if one.endswith("_") else ".")
    return function
