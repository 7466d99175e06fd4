"""Operators of PyTorch's that the table does not hold because others of it say the same: they are defined, as functions of those, when a
program first names them under strata.ops.aten, so that each is an operator with a schema like any other."""

from __future__ import annotations

import strata
from strata import _C, Tensor, _lazy
from strata.library import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _local_scalar_dense(self: Tensor) -> Any:
    return self.item()


def _slice_copy(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return strata.ops.aten.slice.Tensor(self, dim, start, end, step).clone()


def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    given = {"size": size and strata.Size(size), "stride": stride and tuple(stride), "dtype": dtype, "device": device, "layout": layout}
    found = {"size": a.shape, "stride": a.stride(), "dtype": a.dtype, "device": a.device, "layout": a.layout}
    for name, wanted in given.items():
        if wanted is not None and found[name] != wanted:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found[name]}")


def _constrain(size: Any, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def _sparse_addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return strata.addmm(self, mat1, mat2, beta=beta, alpha=alpha)  # sparse ones have been served before (_sparse_functions.py)


def _sparse_mm_reduce(self: Tensor, other: Tensor, reduce: str) -> Any:
    return strata.sparse.mm(self, other, reduce), strata.empty(0, dtype=strata.int64)


# name: (schema, function)
_OPERATORS: dict[str, tuple[str, Callable]] = {
    "_assert_async": ("(Tensor self) -> ()", lambda self: strata._assert_async(self)),
    "_assert_async.msg": ("(Tensor self, str assert_msg) -> ()", lambda self, assert_msg: strata._assert_async(self, assert_msg)),
    "_assert_scalar": ("(Scalar self, str assert_msg) -> ()", _assert_scalar),
    "_assert_tensor_metadata": (
        "(Tensor a, int[]? size=None, int[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
        _assert_tensor_metadata,
    ),
    "_is_all_true": ("(Tensor self) -> Tensor", lambda self: self.all()),
    "_is_any_true": ("(Tensor self) -> Tensor", lambda self: self.any()),
    "_local_scalar_dense": ("(Tensor self) -> Scalar", _local_scalar_dense),
    "_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", lambda self, device=None: self.pin_memory()),
    "_sparse_addmm": ("(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", _sparse_addmm),
    "_sparse_mm_reduce_impl": ("(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)", _sparse_mm_reduce),
    "detach_": ("(Tensor(a!) self) -> Tensor(a!)", lambda self: self.detach_()),
    "slice_copy.Tensor": ("(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", _slice_copy),
    "sym_constrain_range_for_size": ("(Scalar size, *, int? min=None, int? max=None) -> ()", _constrain),
    "sym_size.int": ("(Tensor self, int dim) -> int", lambda self, dim: self.size(dim)),
}
_OTHERS = {"List": "Tensor[] other", "Scalar": "Scalar scalar", "Tensor": "Tensor other"}
_BINARY = {
    **dict.fromkeys(("add", "mul", "div"), ("List", "Scalar", "Tensor")),
    **dict.fromkeys(("sub", "maximum", "minimum", "clamp_max", "clamp_min", "pow"), ("List", "Scalar")),
}


def _of_lists(name: str) -> dict[str, tuple[str, Callable]]:
    """The overloads of an operator over lists of tensors and another operand."""
    inplace = name.endswith("_")
    function = getattr(strata, name)

    def call(self: list[Tensor], other: Any) -> Any:
        made = function(list(self), other)
        return None if inplace else made

    lists, gives = ("Tensor(a!)[]", "()") if inplace else ("Tensor[]", "Tensor[]")
    kinds = _BINARY.get(name.removeprefix("_foreach_").removesuffix("_"), ())
    return {f"{name}.{kind}": (f"({lists} self, {_OTHERS[kind]}) -> {gives}", call) for kind in kinds}


_HOMES = {"_grouped_mm": "strata.nn.functional.grouped"}  # files that define theirs themselves
_library = Library("aten", "FRAGMENT")


def define(name: str) -> bool:
    """Defines all overloads of the name that are known here; whether there are any."""
    if name in _HOMES:
        _lazy.load(_HOMES[name])
        return True
    found = {full: made for full, made in _OPERATORS.items() if full.partition(".")[0] == name}
    if name.startswith("_foreach_") and hasattr(strata, name):
        found = _of_lists(name)
    for full, (schema, function) in found.items():
        if not _C._op_names(f"aten::{full}"):
            _library.define(full + schema)
            _library.impl(full, function, "CompositeImplicitAutograd")
    return bool(found)
