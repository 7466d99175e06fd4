"""Containers of classes that derive from list, dict or OrderedDict: they are copied and written back as those are, raw, while
what their classes override is executed.

One of those is `held` where the capture made it, or copied it from outside. Others are objects like any: their contents are not
touched.
"""

from __future__ import annotations

import collections
import types

from . import values
from .reasons import Break
from .values import Generator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sources import Source

_BASES = (collections.OrderedDict, dict, list)
# Overridden, these are called by native code of the base.
_OUT_OF_REACH = ("__new__", "__getattribute__", "__iter__", "__len__", "keys", "items", "values", "__reversed__")
# What native methods of an OrderedDict call of its class.
_CALLED = ("__setitem__", "__getitem__", "__delitem__", "__contains__", "pop", "update", "setdefault", "__eq__", "copy", "__init__")
_RAW = frozenset(
    "keys values items __iter__ __len__ __contains__ __getitem__ __setitem__ __delitem__ get move_to_end __init__ update".split()
)
_OPERATORS = ("__eq__", "__ne__", "__add__", "__iadd__", "__or__", "__ior__", "__ror__", "__contains__", "__bool__", "__lt__", "__mul__")


def base_of(kind: type) -> type | None:
    """The builtin container that a class derives from, where its instances can be held."""
    if kind in _BASES or kind.__flags__ & (1 << 9) == 0 or not issubclass(kind, _BASES):
        return None
    if type(kind) is not type and type(kind).__module__ not in ("abc", "typing"):
        return None
    base = next(b for b in kind.__mro__ if b in _BASES)
    before = kind.__mro__[: kind.__mro__.index(base)]
    if any(not b.__flags__ & (1 << 9) for b in before) or collections.defaultdict in kind.__mro__:
        return None
    if any(name in b.__dict__ for b in before for name in _OUT_OF_REACH) or any("__slots__" in b.__dict__ for b in before):
        return None
    return base


class Derived:
    """Of the machine of captures."""

    def held_base(self, value: Any) -> type | None:
        """The builtin base of a held container; None for all else."""
        return base_of(type(value)) if id(value) in self.fresh_objects or id(value) in self.copies else None

    def acts_natively(self, value: Any) -> bool:
        """Whether it is held, and operators on it run no code of the program."""
        return self.held_base(value) is not None and not self.python_method(type(value), _OPERATORS)

    def new_derived(self, kind: type) -> Any:
        made = base_of(kind).__new__(kind)
        self.fresh_objects.add(id(made))
        self.keep.append(made)
        return made

    def empty_copy(self, value: Any, base: type) -> Any:
        """A container of the class, which has the attributes of the one from outside: writes of those go elsewhere."""
        made = base.__new__(type(value))
        self.copies.add(id(made))
        if hasattr(value, "__dict__"):
            if not self.lies_apart(value.__dict__) or value.__dict__ is value:
                raise Break(f"a {type(value).__name__} whose attributes are the items of a dict", "keep one of both")
            object.__setattr__(made, "__dict__", value.__dict__)
        return made

    def lies_apart(self, own: dict, obj: Any = None) -> bool:
        """Notes that attributes of an object lie in that dict (None: of a container's copy): whether no other object's do, and none
        of the containers that were copied is it."""
        owner = self.own_dicts.setdefault(id(own), obj)
        return (owner is obj or owner is None or obj is None) and id(own) not in self.by_real

    def pair(self, value: Any) -> tuple:
        found = self.listed(value)
        if len(found) != 2:
            raise self.wrap_error(ValueError(f"{'too many' if len(found) > 2 else 'not enough'} values to unpack (expected 2{'' if len(found) > 2 else f', got {len(found)}'})"))
        return tuple(found)

    def is_mapping(self, value: Any) -> bool:
        """Whether a dict's constructor asks it for its keys, and does not take it for pairs."""
        if isinstance(value, dict):
            return True
        if values.is_constant(value) or values.is_tensor(value) or type(value) in (list, tuple, set, frozenset, Generator):
            return False
        if self.python_method(type(value), ("__getattr__", "__getattribute__")):
            raise Break(f"a dict is made of a {type(value).__name__}, which is asked for its attributes")
        return hasattr(type(value), "keys") or "keys" in getattr(value, "__dict__", {})

    def initial_items(self, owner: dict | list, args: tuple) -> tuple:
        """What the base's __init__ gets: nothing that it would iterate over, and keys that it may hash. Values are kept as they are."""
        bound, given = (args[:1], args[1:]) if args and args[0] is owner else ((), args)
        if isinstance(owner, list):
            return (*bound, *(self.listed(items) for items in given))
        pairs = [self.as_dict(p) if self.is_mapping(p) else [self.listed(pair) for pair in self.listed(p)] for p in given]
        for source in pairs:
            for key in source if isinstance(source, dict) else [pair[0] for pair in source if pair]:
                if not self.hash_is_native(key):
                    raise Break(f"a {type(key).__name__} as a key")
        return (*bound, *pairs)

    def call_derived(self, function: Any, owner: Any, name: str, args: tuple, kwargs: dict) -> Any:
        """A native method of a held container's base; args begin with the container where the function is not bound to it."""
        base = self.held_base(owner)
        if base is None:
            raise Break(f"the method {name} of a {type(owner).__name__}")
        if base is collections.OrderedDict and self.python_method(type(owner), _CALLED):
            if name not in _RAW:
                raise Break(f"OrderedDict.{name} of a {type(owner).__name__}, which overrides what that calls")
            if name in ("__init__", "update"):
                given = args[1:] if args and args[0] is owner else args
                for source in (*given, kwargs):
                    if type(source) is dict:
                        pairs = list(source.items())
                    elif self.is_mapping(source):
                        pairs = self.items_by_keys(source)
                    else:
                        pairs = [self.pair(pair) for pair in self.listed(source)]
                    for key, item in pairs:
                        self.setitem(owner, key, item)
                return None
        if name in ("copy", "fromkeys") and base is collections.OrderedDict:
            raise Break(f"OrderedDict.{name} of a {type(owner).__name__}")
        return NotImplemented

    def missing_item(self, held: dict, key: Any) -> Any:
        """What the container's class gives for a key that is not there; NotImplemented where the key is there, or the class says nothing."""
        if dict.__contains__(held, key):
            return NotImplemented
        if type(held) is collections.defaultdict:
            if held.default_factory is None:
                return NotImplemented
            found = self.call(held.default_factory, (), {})
            dict.__setitem__(held, key, found)
            return found
        method = self.special(type(held), "__missing__")
        if method is None:
            return NotImplemented
        self.guard_class(type(held), "__missing__", method)
        return self.call(method, (held, key), {})

    def emptied(self, kind: type) -> bool:
        """Whether making one runs no code but that of the base."""
        return isinstance(self.special(kind, "__init__"), types.WrapperDescriptorType)


def raw(source: Source, base: type, key: Any) -> Source:
    """An item as the base has it."""
    made = source.item(key)
    made.kind = "raw dict" if issubclass(base, dict) else "raw list"
    return made
