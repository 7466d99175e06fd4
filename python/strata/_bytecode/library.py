"""What functions of Python that a capture calls as they are read of modules and classes, so that who replaces it is seen.

Such functions are strata's own: operators made of operators, `forward` of modules, steps of optimisers. Which of them began is
noted (`_C._noted_call`); what their code names in its globals, in the modules and classes found there and in the classes of what
they work on is watched, by identity.
"""

from __future__ import annotations

import opcode
import types

import strata
from strata import _C

from . import values
from .guards import class_lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_ABSENT = object()


def is_native(function: Any) -> bool:
    """Whether calling it begins no function of Python."""
    return isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType))


class Library:
    """A watch, as guards.Watch is. dicts: (dict, what was found by name); classes: the same of classes, as lookup finds it."""

    def __init__(self) -> None:
        self.dicts: list[tuple[dict, dict[str, Any]]] = []
        self.classes: list[tuple[type, dict[str, Any]]] = []
        self.lists: list[Any] = []
        self.tensors: list[Any] = []
        self._of_dict: dict[int, dict[str, Any]] = {}
        self._of_class: dict[type, dict[str, Any]] = {}
        self._codes: dict[int, types.CodeType] = {}
        self._kinds: set[type] = set()
        self._names: set[str] = set()  # that all codes use
        self.kinds((strata.Tensor,))

    def call(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the function gives. What it may have read is watched from now on."""
        if is_native(function) and not isinstance(getattr(function, "__self__", None), type):
            return function(*args, **kwargs)
        found, begun = _C._noted_call(function, args, kwargs)
        for code, variables in begun:
            home = variables.get("__name__", "")
            if id(code) not in self._codes and home.startswith("strata") and not home.startswith("strata._bytecode"):
                self._codes[id(code)] = code
                self._add(code, variables)
        return found

    def kinds(self, classes: Iterable[type]) -> None:
        """Classes of what such functions work on: what of them is named is looked up there."""
        for kind in classes:
            if kind not in self._kinds:
                self._kinds.add(kind)
                self._watch_class(kind, self._names)

    def same(self) -> bool:
        for d, found in self.dicts:
            if any(d.get(name, _ABSENT) is not value for name, value in found.items()):
                return False
        return all(class_lookup(kind, name, _ABSENT) is value for kind, found in self.classes for name, value in found.items())

    # ---- what a code reads

    def _add(self, code: types.CodeType, variables: dict) -> None:
        names, written = _names_of(code)
        names = (names | {code.co_name}) - written
        holders: list[Any] = []
        for name in names - ({code.co_name} - variables.keys()):  # who shadows a builtin is seen, too
            value = self._watch(variables, name)
            if value is not _ABSENT:
                holders.append(value)
        seen: set[int] = set()
        while holders:
            holder = holders.pop()
            if id(holder) in seen:
                continue
            seen.add(id(holder))
            if isinstance(holder, types.ModuleType):
                inner = [self._watch(vars(holder), name) for name in names & vars(holder).keys()]
                holders += [v for v in inner if isinstance(v, (types.ModuleType, type))]
            elif isinstance(holder, type):
                self._watch_class(holder, names)
        new = names - self._names
        for kind in self._kinds:
            self._watch_class(kind, new)
        self._names |= names

    def _watch(self, d: dict, name: str) -> Any:
        found = self._of_dict.get(id(d))
        if found is None:
            found = self._of_dict[id(d)] = {}
            self.dicts.append((d, found))
        value = found[name] = d.get(name, _ABSENT)
        return value

    def _watch_class(self, kind: type, names: set[str]) -> None:
        """Those of the names that the class has."""
        if not kind.__flags__ & values.HEAP_TYPE:
            return
        there: set[str] = set()
        for base in kind.__mro__:
            there |= names & base.__dict__.keys()
        if not there:
            return
        found = self._of_class.get(kind)
        if found is None:
            found = self._of_class[kind] = {}
            self.classes.append((kind, found))
        for name in there:
            found[name] = class_lookup(kind, name, _ABSENT)

    def __repr__(self) -> str:
        return f"{len(self._codes)} functions of strata, which read {len(self.dicts)} modules and {len(self.classes)} classes"


_SETS = frozenset(opcode.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL"))


def _names_of(code: types.CodeType) -> tuple[set[str], set[str]]:
    """Names that a code and the functions in it use; those of globals that it sets itself, as caches do."""
    names, written = set(code.co_names), set()
    text, extended = code.co_code, 0
    for at in () if _SETS.isdisjoint(text[::2]) else range(0, len(text), 2):
        arg = text[at + 1] | extended
        if text[at] in _SETS:
            written.add(code.co_names[arg])
        extended = arg << 8 if text[at] == opcode.EXTENDED_ARG else 0
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, set_there = _names_of(inner)
            names |= more
            written |= set_there
    return names, written
