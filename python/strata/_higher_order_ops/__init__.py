"""PyTorch's place for operators that take functions: cond, while_loop."""

from __future__ import annotations

import sys
from types import ModuleType

from strata._control_flow import cond, while_loop

__all__ = ["cond", "while_loop"]


class _Callable(ModuleType):
    """The function's file in PyTorch, under whose name programs find the function, too."""


for _function in (cond, while_loop):
    _file = _Callable(f"{__name__}.{_function.__name__}")
    setattr(_file, _function.__name__, _function)
    sys.modules[_file.__name__] = _file
