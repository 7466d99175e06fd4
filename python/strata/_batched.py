"""Tensors of one element of a batch, which hold the whole batch: what vmap gives the function that it calls.

A BatchedTensor looks like one element to programs and to autograd, whose graphs of it are its own. Operators reach it below that
and go to its level, which calls each of them once for the whole batch where a rule says how (_batched_rules.py, _batched_layers.py), and for one element
after the other where none does. Outside of all levels is the batch itself, whose history autograd keeps as ever.
"""

from __future__ import annotations

import functools
import threading

import strata
from strata import _C, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["BatchedTensor", "Learns", "Level", "Unfit", "Written", "current_level", "derivatives_begin", "lacks_values", "learns_outside", "without_history"]

ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, nor deciding by "
    "its value (`if`, `while`), since the function runs once for all elements: please try to rewrite it with other operations "
    "(strata.where), or call the function for each element"
)
_UNFIT = {"aten::as_strided", "aten::as_strided_scatter", "aten::as_strided_copy"}  # they look beyond their element
_CHOSEN = {"aten::_linalg_eigvals", "aten::_linalg_svd", "aten::_linalg_eigh"}  # where no gradient of an element was wanted
WRITTEN = (
    "vmap: a tensor that is not mapped was written in-place, which each element would do again. Please write out of "
    "place (add for add_), or map it, too"
)
DRAWN = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


class BatchedTensor(Tensor):
    """One element of level.size: `value` has them along dim 0, or is the same for all where not `batched`."""

    value: Tensor
    level: Level
    batched: bool
    __torch_function__ = _C._disabled_torch_function_impl

    def __repr__(self) -> str:
        return f"BatchedTensor(of {self.level.size}{'' if self.batched else ', the same for all'}, value=\n{self.value!r}\n)"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return max(_leveled(args, kwargs), key=lambda t: t.level.depth).level.call(func, args, kwargs or {})


def _leveled(args: Any, kwargs: Any) -> list[BatchedTensor]:
    found = []
    for value in (*args, *(kwargs or {}).values()):
        if isinstance(value, BatchedTensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [v for v in value if isinstance(v, BatchedTensor)]
    return found


def each(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The argument or result with its tensors, those of lists too, changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(each(v, change) for v in value) if type(value) in {list, tuple} else tuple(each(v, change) for v in value)
    return value


class Written(RuntimeError):
    """A tensor that is the same for all elements would be written by each of them, in a loop over the elements, too: vmap raises it."""

    def __init__(self) -> None:
        super().__init__(WRITTEN)


class Unfit(Exception):
    """What runs is to be called for one element after the other."""


class Learns(Unfit):
    """Because its history outside of the level would lack something."""


@functools.cache
def facts(func: Any) -> Any:
    """What the table says of the operator; None of one that was defined outside of it."""
    try:
        return strata.ops.info(func)
    except ValueError:
        return None


def draws(func: Any) -> bool:
    """Whether the operator may draw random numbers, as far as the table says."""
    info = facts(func)
    return info is not None and "draws" in info.acts


class Level:
    """A call of vmap: `size` elements. Levels inside of others have a greater depth.

    recorded: whether gradients are wanted of the batch outside. Where a derivative inside of the level needs what the batch's own
    history goes through, where a Function of the user's runs, or an operator that the table lacks, it is Unfit.
    silent: the batch itself gets no history. `outside` has then what would: the tensors of no level that require gradients.
    """

    def __init__(self, size: int, recorded: bool | None = None, silent: bool = False) -> None:
        self.size, self.depth = size, 0
        self.recorded = strata.is_grad_enabled() if recorded is None else recorded
        self.outside: dict[int, Tensor] | None = {} if silent else None
        self.derives = False  # whether derivatives are taken inside, as far as it has come

    def __enter__(self) -> Level:
        self.depth = len(_thread.stack) + 1
        _thread.stack.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _thread.stack.pop()

    def wrap(self, value: Tensor, batched: bool = True) -> BatchedTensor:
        sizes, strides = (value.shape[1:], value.stride()[1:]) if batched else (value.shape, value.stride())
        made = Tensor._make_wrapper_subclass(
            BatchedTensor, sizes, strides=strides, storage_offset=value.storage_offset(), dtype=value.dtype, device=value.device
        )
        made.value, made.level, made.batched = value, self, batched
        return made

    def leaf(self, value: Tensor) -> Tensor:
        """An alias that derivatives inside of this level may be taken by; outside it has value's history."""
        inside = isinstance(value, BatchedTensor) and value.level is self
        self.derives = True
        if inside and value.requires_grad:
            return value.view_as(value)
        return (self.wrap(value.value, value.batched) if inside else self.wrap(value, False)).requires_grad_()

    def owns(self, value: Any) -> bool:
        """Whether it differs from element to element of this level."""
        return isinstance(value, BatchedTensor) and value.level is self and value.batched

    def whole(self, value: Any) -> Tensor:
        """All elements, along dim 0."""
        if self.owns(value):
            return value.value
        value = self.shared(value)
        return value.expand(self.size, *value.shape)

    def shared(self, value: Any) -> Any:
        """The tensor that is the same for all elements without its coat."""
        return value.value if isinstance(value, BatchedTensor) and value.level is self and not value.batched else value

    def call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The operator, as it reached a tensor of this level below autograd, with the batch itself."""
        if self.outside is None:
            return _C._from_the_top(self._call, (func, args, kwargs))
        return _C._from_the_top(self._silently, (func, args, kwargs))

    @strata.no_grad()
    def _silently(self, func: Any, args: tuple, kwargs: dict) -> Any:
        return self._call(func, args, kwargs)

    def _call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        from strata import _batched_layers

        mine = [t for t in _leveled(args, kwargs) if t.level is self]
        args = tuple(each(a, self.shared) for a in args)
        kwargs = {name: each(a, self.shared) for name, a in kwargs.items()}
        self._check(func, mine, args, kwargs)
        if not any(t.batched for t in mine):
            return self._written(func, mine, each(func(*args, **kwargs), lambda t: self.wrap(t, False)))
        if draws(func):
            raise RuntimeError(DRAWN)
        rule = _batched_layers.rule_of(func)
        made = NotImplemented if rule is None else rule(self, func, args, kwargs)
        if made is NotImplemented:
            return self._written(func, mine, self.one_by_one(func, args, kwargs))
        return self._written(func, mine, each(made, self.wrap))

    def _check(self, func: Any, mine: list[BatchedTensor], args: tuple, kwargs: dict) -> None:
        """Unfit where what runs once for all is not known to have the history that it has element by element."""
        info = facts(func)
        if info is None or info.name in _UNFIT:
            raise Unfit(f"{func}")
        outermost = _thread.stack[0].outside
        if not self.recorded and outermost is None:
            return
        whole = [self.value_of(t) for value in (*args, *kwargs.values()) for t in _tensors(value)]
        if outermost is not None:
            of_none = [t for t in whole if not isinstance(t, BatchedTensor)]
            outermost.update((id(t), t) for t in of_none if t.requires_grad)
            whole = [t for t in whole if isinstance(t, BatchedTensor)]
        self.derives |= any(t.requires_grad and t.is_leaf for t in mine)
        inside = (self.derives and any(t.requires_grad for t in mine)) or not strata.is_grad_enabled()
        if self.recorded and (inside or info.name in _CHOSEN) and any(t.requires_grad or learns_outside(t) for t in whole):
            raise Learns(f"{func}, of whose result a derivative is taken inside and outside,")

    def value_of(self, t: Tensor) -> Tensor:
        return t.value if isinstance(t, BatchedTensor) and t.level is self else t

    def _written(self, func: Any, mine: list[BatchedTensor], made: Any) -> Any:
        """An operator that writes gives back what it wrote."""
        schema = func._schema
        if not schema.is_mutable or not schema.returns or schema.returns[0].alias_info is None or not isinstance(made, Tensor):
            return made
        return mine[0] if schema.arguments[0].alias_info is not None and schema.arguments[0].alias_info.is_write else made

    def one_by_one(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """The operator for one element after the other, and what it gives side by side."""
        if not all(map(self.owns, _written_by(func, args, kwargs))):
            raise RuntimeError(WRITTEN)
        found = []
        for i in range(self.size):
            element = lambda t, i=i: t.value.select(0, i) if self.owns(t) else t  # noqa: E731
            found.append(func(*(each(a, element) for a in args), **{name: each(a, element) for name, a in kwargs.items()}))
        return self._stacked(func, found)

    def _stacked(self, func: Any, found: list) -> Any:
        first = found[0]
        if isinstance(first, Tensor):
            if any(t.shape != first.shape for t in found):
                raise RuntimeError(
                    f"vmap: {func} gives results of other sizes for each element, which cannot lie side by side: call it outside of vmap"
                )
            return self.wrap(strata.stack(found))
        if isinstance(first, (list, tuple)):
            columns = [self._stacked(func, list(column)) for column in zip(*found, strict=True)]
            return columns if isinstance(first, list) else tuple(columns)
        if first is None:
            return None
        raise RuntimeError(ITEM)


def _written_by(func: Any, args: tuple, kwargs: dict) -> list[Tensor]:
    """The tensors among the arguments that the operator writes, as its schema or the table says."""
    info = facts(func)
    acts = "" if info is None else info.acts
    given = {**dict(zip((a.name for a in func._schema.arguments), args, strict=False)), **kwargs}
    found = []
    for a in func._schema.arguments:
        marked = a.alias_info is not None and a.alias_info.is_write
        if marked or (f"writes:{a.name}" in acts.split() and given.get("training", True)):
            found += _tensors(given.get(a.name))
    return found


def _tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [t for t in value if isinstance(t, Tensor)] if isinstance(value, (list, tuple)) else []


class _Thread(threading.local):
    def __init__(self) -> None:
        self.stack: list[Level] = []


_thread = _Thread()


def without_history(t: Tensor) -> Tensor:
    """The tensor as what it was made by inside of its level is over; outside of the level its history stays."""
    return t.level.wrap(t.value, t.batched) if isinstance(t, BatchedTensor) else t.detach()


def lacks_values(t: Tensor) -> bool:
    """Whether it is a shape alone, as a gradient is that began outside of any level."""
    return lacks_values(t.value) if isinstance(t, BatchedTensor) else t.is_meta


def learns_outside(t: Tensor) -> bool:
    """Whether the batch itself, outside of the tensor's level, is recorded."""
    return isinstance(t, BatchedTensor) and (t.value.requires_grad or learns_outside(t.value))


def derivatives_begin(roots: list[Tensor]) -> None:
    """Told before a backward pass inside of a level. roots: whose gradients go to .grad of the leaves. Unfit where one of these is
    outside, which would get an element's."""
    from strata.autograd.graph import _leaves_of

    for level in _thread.stack:
        level.derives = True
    if any(not isinstance(leaf, BatchedTensor) for leaf in _leaves_of(roots)):
        raise Unfit("a backward pass to tensors outside of it")


def current_level() -> Level | None:
    """The innermost level that runs on this thread."""
    return _thread.stack[-1] if _thread.stack else None
