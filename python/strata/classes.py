"""Classes that a library in C++ registers for programs, as `strata.classes.<namespace>.<name>`: this version has none."""

from __future__ import annotations

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

loaded_libraries: set[str] = set()


class _Namespace:
    """What classes of one namespace are asked of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(
            f"strata.classes.{self.name}.{name}: Class {self.name}.{name} not registered: this version has no classes of C++; write one in "
            "Python, or operators with strata.library"
        )


def load_library(path: str) -> None:
    """strata.ops.load_library."""
    from strata import ops

    ops.load_library(path)
    loaded_libraries.add(path)


def _make(name: str) -> _Namespace:
    if name.startswith("__"):
        raise KeyError(name)
    return _Namespace(name)


__getattr__, __dir__ = _lazy.of(globals(), otherwise=_make)
