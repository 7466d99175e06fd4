"""A function of one place of attention, run for all places: at once where its operators are known to allow that, else place by place.

The function gets 0-dim tensors: a score, the numbers of batch, head, query and key. For all at once each of them has six dims, as no
tensor that such a function reads is likely to have: two of size 1, which tell it from those, and [b, h, q, kv]. Operators over
elements give the same for each place then, and so does reading a table at a place. Whatever else the function calls, or reads of a
tensor's shape, is left to vmap.
"""

from __future__ import annotations

import functools

import strata
from strata import Tensor
from strata.utils._python_dispatch import TorchDispatchMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DIMS = 6
_ELEMENTWISE = {"aten::_to_copy", "aten::clone", "aten::detach", "aten::alias", "aten::zeros_like", "aten::ones_like", "aten::full_like",
                "aten::where.ScalarOther", "aten::where.ScalarSelf", "aten::where.Scalar"}  # fmt: skip
_NEW = {"aten::new_full", "aten::new_ones", "aten::new_zeros"}
_INDEX = "aten::index.Tensor"
_KNOWN = {*_ELEMENTWISE, *_NEW, _INDEX}  # some of these are C++ or composite: the table does not tell what they do


class _Unfit(Exception):
    """The function does what is not known to be the same for all places at once."""


def _of_shape(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise _Unfit("a shape is read, which for one place is that of a number")


class _Places(Tensor):
    """What there is of each place, and what is made of it."""

    dim = ndimension = numel = nelement = size = stride = __len__ = _of_shape
    shape = ndim = nbytes = itemsize = property(_of_shape)


@functools.cache
def _facts(name: str) -> tuple[bool, bool]:
    """Whether the operator is one over elements, and whether it neither writes nor draws."""
    if name in _KNOWN:
        return name in _ELEMENTWISE, True
    info = strata.ops.info(name)
    pure = "draws" not in info.acts and "untold" not in info.acts and "!" not in info.schema
    return pure and info.kind == "pointwise", pure


def _placed(value: Any) -> bool:
    return isinstance(value, Tensor) and Tensor.dim(value) == _DIMS


class _Operators(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        given = [*args, *kwargs.values()]
        overload = func._schema.overload_name
        name = func._schema.name + (f".{overload}" if overload else "")
        elementwise, pure = _facts(name)
        if not pure:
            raise _Unfit(name)
        if name == _INDEX:
            table, places = args
            whole = all(isinstance(i, Tensor) and i.dtype not in {strata.bool, strata.uint8} and Tensor.dim(i) in {0, _DIMS} for i in places)
            if _placed(table) or (any(_placed(i) for i in places) and not (whole and len(places) == Tensor.dim(table))):
                raise _Unfit(name)
        elif any(isinstance(a, (list, tuple)) and any(_placed(t) for t in a) for a in given):
            raise _Unfit(name)
        elif any(_placed(a) for a in given):
            if name in _NEW:
                result = func(*args, **kwargs)
                if Tensor.dim(result):
                    raise _Unfit(name)
                return result
            if not elementwise or any(isinstance(a, Tensor) and Tensor.dim(a) not in {0, _DIMS} for a in given):
                raise _Unfit(name)
            # A tensor of no dims beside such with dims would not take part in choosing the dtype.
            args = tuple(Tensor.view(a, [1] * _DIMS) if isinstance(a, Tensor) and Tensor.dim(a) == 0 else a for a in args)
        return func(*args, **kwargs)


def _at_once(function: Callable, first: tuple[Tensor, ...], places: list[Tensor]) -> Tensor:
    counts = [len(p) for p in places]
    spread = [p.view([1] * (2 + d) + [-1] + [1] * (3 - d)) for d, p in enumerate(places)]
    given = [t.as_subclass(_Places) for t in (*(t[None, None] for t in first), *spread)]
    with _Operators():
        result = function(*given)
    result = result.as_subclass(Tensor)
    if result.dim() not in {0, _DIMS}:
        raise _Unfit("its result is no number")
    return result.expand(1, 1, *counts)[0, 0]


def everywhere(function: Callable, score: Tensor | None, places: list[Tensor]) -> Tensor:
    """function([score,] b, h, q_idx, kv_idx) for all places: [b, h, q, kv]. score: of these dims, or None; places: their numbers."""
    first = () if score is None else (score,)
    try:
        return _at_once(function, first, places)
    except Exception:  # vmap says what is wrong with the function, if something is
        for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
            function = strata.vmap(function, in_dims=(*(0 for _ in first), *dims))
        return function(*first, *places)
