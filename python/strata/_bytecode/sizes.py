"""Sizes and ints of a capture that may differ from call to call: values that remember how they were computed.

A `Sym` looks like its number to the program. What it is computed from is a straight line of steps (`program.py`), which are done
again for other sizes. Each answer that the program gets from one (a comparison, its text, a use as an index) is a condition.
"""

from __future__ import annotations

import math
import operator

import strata

from .reasons import Asked, Break

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .program import Program

_PLAIN = (int, float, bool)


class Sym:
    """An int or float. value: what it is in this capture; slot: where a run of the program keeps it; text: for people."""

    __slots__ = ("program", "slot", "text", "value")
    __array_ufunc__ = None  # arrays of NumPy leave operators to it

    def __init__(self, program: Program, slot: int, value: Any, text: str):
        self.program, self.slot, self.value, self.text = program, slot, value, text

    def settle(self) -> Any:
        """The number itself, which is a condition from now on."""
        return self.program.settle(self)

    # What needs the number: native code by __index__, texts, keys of dicts.
    def __index__(self) -> int:
        return operator.index(self.settle())

    def __int__(self) -> int:
        return int(self.settle())

    def __float__(self) -> float:
        return float(self.settle())

    def __complex__(self) -> complex:
        return complex(self.settle())

    def __hash__(self) -> int:
        return hash(self.settle())

    def __str__(self) -> str:
        return str(self.settle())

    def __repr__(self) -> str:
        return repr(self.settle())

    def __format__(self, spec: str) -> str:
        return format(self.settle(), spec)

    def __bool__(self) -> bool:
        return self.program.lift(operator.ne, (self, 0))

    def __reduce__(self) -> Any:
        return type(self.value), (self.settle(),)

    def __round__(self, digits: Any = None) -> Any:
        return self.program.lift(round, (self,) if digits is None else (self, digits))

    def __floor__(self) -> Any:
        return self.program.lift(math.floor, (self,))

    def __ceil__(self) -> Any:
        return self.program.lift(math.ceil, (self,))

    def __trunc__(self) -> Any:
        return self.program.lift(math.trunc, (self,))


def _both(function: Any) -> tuple:
    """The methods of an operator: a Sym on the left, on the right."""

    def left(self: Sym, other: Any) -> Any:
        if type(other) is Sym or type(other) in _PLAIN:
            return self.program.lift(function, (self, other))
        if type(other) is complex or type(other).__module__ == "numpy":
            return function(self.settle(), other)
        return NotImplemented

    def right(self: Sym, other: Any) -> Any:
        if type(other) in _PLAIN:
            return self.program.lift(function, (other, self))
        if type(other) is complex or type(other).__module__ == "numpy":
            return function(other, self.settle())
        return NotImplemented

    return left, right


for _name in "add sub mul floordiv truediv mod pow lshift rshift and or xor divmod".split():
    _function = divmod if _name == "divmod" else getattr(operator, _name + ("_" if _name in ("and", "or") else ""))
    _left, _right = _both(_function)
    setattr(Sym, f"__{_name}__", _left)
    setattr(Sym, f"__r{_name}__", _right)
for _name in "lt le gt ge eq ne".split():
    setattr(Sym, f"__{_name}__", _both(getattr(operator, _name))[0])
for _function in (operator.neg, operator.pos, operator.abs, operator.invert):
    setattr(Sym, f"__{_function.__name__}__", lambda self, _f=_function: self.program.lift(_f, (self,)))


class Sizes(tuple):
    """A strata.Size of which some are Sym."""

    __slots__ = ()

    def numel(self) -> Any:
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Sizes(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return Sizes(tuple(self) + tuple(other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Sizes(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return Sizes(tuple(self) * count)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return repr(strata.Size([int(n) for n in self]))

    __str__ = __repr__


MOST_NESTED = 50


def has_sym(value: Any, depth: int = 0) -> bool:
    """Whether one is in it, within what operators take. Break where it holds itself."""
    kind = type(value)
    if depth > MOST_NESTED:
        raise Break("a container that holds itself, or containers that nest too deep")
    if kind is Sym:
        return True
    if kind is slice:
        return has_sym(value.start) or has_sym(value.stop) or has_sym(value.step)
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(has_sym(v, depth + 1) for v in value)
    return isinstance(value, dict) and any(has_sym(v, depth + 1) for v in value.values())


def concrete(value: Any) -> Any:
    """The same with numbers in the place of Syms, without conditions."""
    kind = type(value)
    if kind is Sym:
        if value.slot in value.program.late:
            raise Asked(value.program.late[value.slot].reads)
        return value.value
    if kind is Sizes:
        return strata.Size([concrete(n) for n in value])
    if not has_sym(value):
        return value
    if kind is slice:
        return slice(concrete(value.start), concrete(value.stop), concrete(value.step))
    if isinstance(value, dict):
        return {k: concrete(v) for k, v in value.items()}
    return remade(value, [concrete(v) for v in value])


def remade(like: Any, items: list) -> Any:
    """A container of the kind with these items."""
    kind = type(like)
    if kind in (list, tuple, set, frozenset):
        return kind(items)
    if kind is Sizes or kind is strata.Size:
        return strata.Size(items)
    return kind._make(items) if hasattr(kind, "_make") else kind(items)


def settled(value: Any) -> Any:
    """The same with numbers in the place of Syms, each of which is a condition from now on."""
    if has_sym(value):
        for sym in syms(value):
            sym.settle()
    return concrete(value)


def syms(value: Any) -> Any:
    kind = type(value)
    if kind is Sym:
        yield value
    elif kind is slice:
        yield from syms((value.start, value.stop, value.step))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for v in value:
            yield from syms(v)
    elif isinstance(value, dict):
        yield from syms(list(value.values()))


def stand_in(value: Any) -> Any:
    """Something of the type that the program sees."""
    if type(value) is Sym:
        return value.value
    return strata.Size(()) if type(value) is Sizes else value


def best(function: Any, args: tuple) -> Any:
    """max or min of numbers, which may be Syms, as one step; None where it is for Python to say."""
    items = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    found = next((v for v in items if type(v) is Sym), None)
    if found is None or len(items) < 2 or not all(type(v) is Sym or type(v) in _PLAIN for v in items):
        return None
    return found.program.lift(function, items)
