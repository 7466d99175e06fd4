"""Names that are loaded when they are first used: the one way in which the modules of strata find theirs."""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def listed(homes: dict[str, str]) -> list[str]:
    """The names in a table of homes."""
    return [name for names in homes.values() for name in names.split()]


def load(name: str) -> ModuleType:
    """The module of that full name, without importlib, which takes half a millisecond to import."""
    if name in sys.modules:
        __import__(name)  # waits for another thread that is at it
    else:
        collects = gc.isenabled()
        gc.disable()  # an import makes objects by the thousand, and keeps nearly all of them
        try:
            __import__(name)
        finally:
            if collects:
                gc.enable()
    return sys.modules[name]


def of(
    module: dict[str, Any],
    homes: dict[str, str] | None = None,
    parts: str = "",
    otherwise: Callable[[str], Any] | None = None,
    public: bool = False,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module, whose globals are given. What was found once is an attribute like others.

    homes: files beside the module (in it, where it is a package; ".x" is one level up), and the names that each has.
    parts: files that are names themselves. otherwise: makes any other value, and raises KeyError where there is none.
    public: functions from the files say that they are the module's.
    """
    place = module["__name__"]
    home = {name: file for file, names in (homes or {}).items() for name in names.split()}
    files = frozenset(parts.split())

    def full(file: str) -> str:
        return (place.rpartition(".")[0] + file).rstrip(".") if file[0] == "." else f"{place}.{file}"

    def get(name: str) -> Any:
        if name in home:
            file = home[name]
            found = load(full(file))
            value = getattr(found, name)
            values = [value]
            if home.get(file) == file:  # the import has hidden the name that the file shares
                module[file] = getattr(found, file)
                values.append(module[file])
            for v in values:
                if public and getattr(v, "__module__", "").startswith(place):
                    v.__module__ = place
        elif name in files:
            return load(full(name))
        elif name in ("__path__", "__wrapped__"):  # `from module import name` asks every module for it, and so does inspect
            raise AttributeError(f"module {place!r} has no attribute {name!r}")
        else:
            try:
                value = (otherwise or {}.__getitem__)(name)
            except KeyError:
                raise AttributeError(f"module {place!r} has no attribute {name!r}") from None
        module[name] = value
        return value

    def names() -> list[str]:
        return sorted({*module, *module.get("__all__", ()), *home, *files})

    return get, names


class _Made:
    """Loads what was made while it was looked for."""

    @staticmethod
    def create_module(spec: Any) -> Any:
        return sys.modules[spec.name]

    @staticmethod
    def exec_module(module: Any) -> None:
        pass


def made(name: str, doc: str, kind: type | None = None) -> Any:
    """A module that no file holds, with the spec by which importlib knows it; the one that is there already, where there is one."""
    if name not in sys.modules:
        module = (kind or type(sys))(name, doc)
        module.__spec__ = type(sys.__spec__)(name, _Made)
        sys.modules[name] = module
    return sys.modules[name]


def aliases(module: dict[str, Any], files: dict[str, str]) -> None:
    """Modules beside (in a package: in) `module` under second names: each reads its names from another file when asked."""
    place = module["__name__"]
    for name, file in files.items():
        if file.startswith(".."):  # beside the package
            file = f"{place.rpartition('.')[0]}.{file[2:]}"
        else:
            file = f"{place}.{file}"
        other = made(f"{place}.{name}", f"The names of {file}, under the name that PyTorch has for the file.")
        other.__getattr__ = lambda attribute, file=file: getattr(load(file), attribute)
        other.__dir__ = lambda file=file: dir(load(file))
        module.setdefault(name, other)


def operators(module: dict[str, Any], same: dict[str, str], plain: bool = False) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a namespace of operators: `strata.linalg.norm` is the table's `linalg_norm`.

    same: names of the namespace whose operator is called otherwise. plain: operators without the prefix count too.
    """
    from strata._C import _functions

    place, functions = module["__name__"], vars(_functions)
    prefix = place.rpartition(".")[2] + "_"

    def find(name: str) -> Any:
        if not name.startswith("__"):
            for wanted in (prefix + name, same.get(name), name if plain else None):
                if wanted in functions:
                    return functions[wanted]
        raise AttributeError(
            f"module {place!r} has no attribute {name!r}: the operator table does not hold {prefix}{name}"
        )

    def names() -> list[str]:
        return sorted({*same, *(f.removeprefix(prefix) for f in functions if f.startswith(prefix))})

    return of(module, otherwise=find)[0], names
