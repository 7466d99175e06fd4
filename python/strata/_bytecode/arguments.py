"""What builtins written in C say of their arguments, and of what the program's special methods give them."""

from __future__ import annotations

import functools
import types

from . import values
from .sizes import Sym

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The least and the most positional arguments; keywords are refused.
_COUNTS: dict[Any, tuple[int, int | None]] = {
    len: (1, 1), isinstance: (2, 2), issubclass: (2, 2), getattr: (2, 3), hasattr: (2, 2), setattr: (3, 3), next: (1, 2), iter: (1, 2),
    any: (1, 1), all: (1, 1), callable: (1, 1), hash: (1, 1), id: (1, 1), map: (2, None), filter: (2, 2), functools.reduce: (2, 3),
    set: (0, 1), frozenset: (0, 1), object: (0, 0),
}  # fmt: skip
_OF_ATTRIBUTES = (getattr, hasattr, setattr)


def check(tracer: Any, function: Any, args: tuple, kwargs: dict) -> None:
    """Raises what the builtin raises, where it takes no such arguments."""
    if function is sorted:
        if len(args) != 1 or not kwargs.keys() <= {"key", "reverse"}:
            tracer.native(sorted, *args, **kwargs)
        return
    counts = _COUNTS.get(function) if isinstance(function, (type, *values.BUILTIN_FUNCTIONS)) else None
    if counts is None:
        return
    least, most = counts
    if kwargs or len(args) < least or (most is not None and len(args) > most):
        tracer.native(function, *args, **kwargs)
    elif function in _OF_ATTRIBUTES and not isinstance(args[1], str):
        tracer.native(function, object(), *args[1:])
    elif function in (set, frozenset) and args and values.is_constant(args[0]) and not isinstance(args[0], (str, bytes, tuple)):
        tracer.native(function, *args)


def print_(*, sep: Any = None, end: Any = None, file: Any = None, flush: Any = False) -> None:
    """Refuses what print() refuses."""
    for name, value in (("sep", sep), ("end", end)):
        if not isinstance(value, (str, types.NoneType)):
            raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")


class _Giving:
    """Gives a value whatever it is asked for, so that C looks at it as at what a method of the program gives."""

    def __init__(self, value: Any):
        self.value = value

    def _give(self, *_: Any) -> Any:
        return self.value

    __bool__ = __len__ = __str__ = __repr__ = __format__ = __int__ = __float__ = _give


_GIVEN = {bool: bool, str: str, repr: str, format: str, int: int, float: float}


def given(tracer: Any, function: Any, value: Any) -> Any:
    """What the builtin makes of its argument's special method's result."""
    if type(value) in (Sym, values.Number) or type(value) is _GIVEN.get(function) or (function is len and type(value) is int and value >= 0):
        return value
    return tracer.native(function, _Giving(value))


def partial(tracer: Any, args: tuple, kwargs: dict) -> functools.partial:
    """A partial of a partial is one of what that holds."""
    if not args or not callable(args[0]):
        return tracer.native(functools.partial, *args, **kwargs)
    if not values.is_partial(args[0]):
        return functools.partial(*args, **kwargs)
    inner, *more = args
    held, named = tracer.getattr(inner, "args"), tracer.getattr(inner, "keywords")
    return functools.partial(tracer.getattr(inner, "func"), *held, *more, **{**named, **kwargs})
