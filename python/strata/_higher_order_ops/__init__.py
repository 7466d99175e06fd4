"""PyTorch's place for operators that take functions: cond, while_loop, scan and others."""

from __future__ import annotations

from types import ModuleType

from strata import _lazy
from strata._control_flow import cond, while_loop
from strata._scans import associative_scan, foreach_map, map, scan  # noqa: A004

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]


class _Callable(ModuleType):
    """The function's file in PyTorch, under whose name programs find the function, too."""


for _function in (associative_scan, cond, foreach_map, map, scan, while_loop):
    _file = _lazy.made(f"{__name__}.{_function.__name__}", _Callable.__doc__, _Callable)
    setattr(_file, _function.__name__, _function)
