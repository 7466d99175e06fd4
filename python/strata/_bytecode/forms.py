"""Parts of a program (program.py): kinds of steps, slots in nests of values, symbols, conditions, and what results must be like."""

from __future__ import annotations

from strata import _C
from strata._graph_form import same_constant

from . import values
from .region import root_of
from .sizes import remade

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .seen import Mark

LIFT, CONDITION, OPERATOR, INPUT, FRESH, DO, CUT, BETWEEN, CARRY = range(9)
BOUND = 64  # instances of an entry that are kept, and refusals


class Ref:
    """A slot in the place of a value."""

    __slots__ = ("slot",)

    def __init__(self, slot: int):
        self.slot = slot


class Nest:
    """A container some of whose items may be slots. like: one of the kind."""

    __slots__ = ("items", "keys", "like")

    def __init__(self, like: Any, items: list, keys: list | None = None):
        self.like, self.items, self.keys = like, items, keys


def fill(form: Any, env: list) -> Any:
    kind = type(form)
    if kind is Ref:
        return env[form.slot]
    if kind is not Nest:
        return form
    items = [fill(v, env) for v in form.items]
    like = form.like
    if form.keys is not None:
        return dict(zip(form.keys, items, strict=True))
    if like is list:
        return items
    if like is tuple:
        return tuple(items)
    return slice(*items) if like is slice else remade(like, items)


class Method:
    """A builtin method of a tensor, to be found again on another."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str):
        self.owner, self.name = owner, name


class Symbol:
    """A size, an int or a float from outside. low, high: the values for which its entry was captured, as far as they are one range."""

    def __init__(self, name: str, text: str, value: float, low: int | None, mark: Mark | None):
        self.name, self.text, self.value, self.mark = name, text, value, mark
        self.low: int | None = low
        self.high: int | None = None

    def __repr__(self) -> str:
        if type(self.value) is float:
            return f"{self.name} = {self.text}, a float"
        low = "-inf" if self.low is None else str(self.low)
        return f"{self.name} = {self.text} in [{low}, {'inf' if self.high is None else self.high}]"


class Condition:
    """That a slot holds what it held. text: in terms of symbols; place: the line that asked; pure: symbols alone decide it; check: where
    it does not hold, the program raises (strata._check)."""

    __slots__ = ("check", "expected", "place", "pure", "slot", "text")

    def __init__(self, slot: int, expected: Any, text: str, place: str, pure: bool):
        self.slot, self.expected, self.text, self.place, self.pure, self.check = slot, expected, text, place, pure, False

    def __repr__(self) -> str:
        return f"{self.text}  # {self.place}"


def facts(t: Any) -> tuple:
    """What a program may read of a tensor that no operator made it ask for."""
    return type(t), t.dtype, t.device, t.dim(), t.requires_grad, t.is_leaf


def modes() -> tuple:
    return _C.is_grad_enabled(), _C.is_autocast_enabled("cpu"), _C.get_autocast_dtype("cpu")


def size_at(t: Any, dim: int) -> int:
    return t.shape[dim]


def slots_in(form: Any, found: set[int]) -> None:
    kind = type(form)
    if kind is Ref:
        found.add(form.slot)
    elif kind is Method:
        slots_in(form.owner, found)
    elif kind is tuple or kind is Nest:
        for part in form if kind is tuple else form.items:
            slots_in(part, found)


def geometry_in(t: Any, of: Any) -> tuple:
    """Sizes, strides and elements ahead of `of` of a view of that, or of what that is a view of. ValueError where it is none: what
    is a view of one tensor may be a copy of another."""
    if root_of(t) is not root_of(of):
        raise ValueError("a result is no view of what it was a view of")
    return tuple(t.shape), t.stride(), t.storage_offset() - of.storage_offset()


def lies_in(t: Any, of: Any) -> bool:
    """Whether the first and last elements of a view lie at places of another one's elements."""
    last = sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
    return all(_is_place(t.storage_offset() + ahead - of.storage_offset(), of) for ahead in (0, last))


def _is_place(at: int, t: Any) -> bool:
    """Whether an element of it lies so many places ahead of its first one."""
    rest = at
    for step, n in sorted(zip(t.stride(), t.shape, strict=True), reverse=True):
        if rest < 0:
            return False
        if step:
            rest = rest - min(rest // step, n - 1) * step
    return rest == 0


def differs(form: tuple, found: Any, env: list, known: set[int]) -> str:
    """How a step's result differs from what was captured; what fits is put into the slots. known: ids of tensors that are there."""
    kind = form[0]
    if kind == "tensor":
        if not values.is_tensor(found):
            return f"a {type(found).__name__} where a tensor was"
        if id(found) in known:
            return "a tensor that was there before"
        if facts(found) != form[2]:
            return f"{facts(found)} where {form[2]} was"
        env[form[1]] = found
        known.add(id(found))
    elif kind == "same":
        return "" if found is env[form[1]] else "another tensor than the one that was there"
    elif kind == "number":
        if type(found) is not form[2]:
            return f"a {type(found).__name__}"
        env[form[1]] = found
    elif kind == "items":
        if type(found) is not form[1] or len(found) != len(form[2]):
            return f"{len(found)} results where {len(form[2])} were"
        return next((text for f, v in zip(form[2], found, strict=True) if (text := differs(f, v, env, known))), "")
    elif kind == "dict":
        if type(found) is not dict or list(found) != form[1]:
            return "other keys"
        return next((text for f, v in zip(form[2], found.values(), strict=True) if (text := differs(f, v, env, known))), "")
    elif kind == "equal" and not same_constant(found, form[1]):
        return f"{found!r} where {form[1]!r} was"
    return ""
