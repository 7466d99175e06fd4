"""Containers of modules: Sequential, ModuleList, ModuleDict. Those of parameters are in parameter_container.py."""

from __future__ import annotations

import operator
from collections import OrderedDict
from itertools import chain

from strata import _lazy

from .module import Module, _addindent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Self


def checked_index(index: int, size: int) -> int:
    """`index` counted from the front. IndexError where it is out of range, TypeError where it is no integer."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


class _ModuleRow(Module):
    """What Sequential and ModuleList share: modules named "0", "1", ... in order."""

    _modules: dict[str, Module]

    def _key(self, index: int) -> str:
        return list(self._modules)[checked_index(index, len(self))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        for key in list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, key)
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Adds `module` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Removes what stands at `key` and returns it."""
        module = self[key]
        del self[key]
        return module

    def _insert(self, index: int, module: Module) -> None:
        rest = [self._modules.pop(str(i)) for i in range(index, len(self))]
        for i, each in enumerate([module, *rest], index):
            self._modules[str(i)] = each


class Sequential(_ModuleRow):
    """Modules that run one after the other: Sequential(a, b, ...) or Sequential(OrderedDict(name=a, ...))."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], OrderedDict)
        for name, module in args[0].items() if named else enumerate(args):
            self.add_module(name if named else str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Module:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def _checked(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return other

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._checked(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(list(self._checked(other)))

    def _check_factor(self, factor: int) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Puts `module` before position `index`. IndexError out of range; AssertionError where it is no Module."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds every module of `sequential` at the end."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(_ModuleRow):
    """A list of modules that are registered; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: int | slice) -> Module:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(checked_index(idx, len(self)))]

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Puts `module` before position `index`."""
        size = len(self)
        self._insert(min(index + size if index < 0 else index, size), module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds every module of an iterable at the end. TypeError where it is none."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        if len(self) == 0:
            return self._get_name() + "()"
        # Neighbours that print alike are printed once, with their range and count.
        runs: list[list] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            _addindent(f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}", 2) for a, b, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


def update_from_pairs(target: Any, pairs: Iterable, name: str) -> None:
    """`target[key] = value` for each pair. TypeError and ValueError name the element that is no pair."""
    for position, pair in enumerate(pairs):
        if not hasattr(pair, "__iter__"):
            raise TypeError(f"{name} update sequence element #{position} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{position} has length {len(pair)}; 2 is required")
        target[pair[0]] = pair[1]


class ModuleDict(Module):
    """A dictionary of modules that are registered under their keys; it keeps insertion order."""

    _modules: dict[str, Module]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes everything."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes a key and returns its module."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds the entries of a mapping, or of an iterable of (key, module) pairs."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        update_from_pairs(self, modules.items() if hasattr(modules, "items") else modules, "ModuleDict")

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".parameter_container": "ParameterDict ParameterList"})
