"""isinstance and issubclass: what classes are asked that decide it themselves."""

from __future__ import annotations

import functools

from . import sizes, values
from .reasons import Break
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_KNOWN = ("abc", "enum", "typing", "strata.nn.parameter", "strata._legacy_types")  # metaclasses whose checks read what is guarded


def is_instance(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    value, kinds = args
    if isinstance(value, Generator):
        return tracer.native(issubclass, value.kind, kinds)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if isinstance(kind, type) and tracer.python_method(type(kind), ("__instancecheck__",)) and type(kind).__module__ not in _KNOWN:
            raise Break(f"isinstance by {type(kind).__name__}.__instancecheck__")
    tracer.special(type(value), "__class__")
    found = tracer.native(isinstance, sizes.stand_in(value), kinds)
    if tracer.is_outside(value) and any(type(kind) is not type for kind in values.flat(kinds)) and type(value).__flags__ & values.HEAP_TYPE and not values.is_tensor(value):
        tracer.guards.add("ask", tracer.known[id(value)], functools.partial(_is_still, kinds, found))
    return found


def _is_still(kinds: Any, found: bool, value: Any) -> bool:
    """What a class that decides itself what its instances are says of an object."""
    return isinstance(value, kinds) is found


def is_subclass(tracer: Any, args: tuple, kwargs: dict, f: Any) -> bool:
    for kind in values.flat(args):
        if isinstance(kind, type):
            tracer.special(kind, "__class__")
    found = tracer.native(issubclass, *args)
    if any(type(kind) is not type for kind in values.flat(args[1])):
        tracer.guards.add("call", None, lambda: issubclass(*args) is found)
    return found
