"""Functions of the program that are called between captured stretches."""

from __future__ import annotations

import types

import strata
from strata import _C

from . import values
from .plain import Plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .entry import Compiled
    from .frame import Frame


class PlainWithCallees(Plain):
    """Between captured stretches, functions of the program that are called get entries of their own."""

    def __init__(self, owner: Compiled):
        self.owner = owner
        self.callees: dict[int, tuple[Any, Compiled]] = {}

    def call(self, function: Any, args: tuple, kwargs: dict, f: Frame | None = None) -> Any:
        target, first = function, ()
        if not isinstance(function, values.BUILTIN_FUNCTIONS):
            _C._executed_frames(())  # it has frames of its own
        if values.is_module(target) and plain_call(target):
            target = target.forward
        if isinstance(target, types.MethodType):
            target, first = target.__func__, (target.__self__,)
        if isinstance(target, types.FunctionType) and self.compilable(target):
            return self.callee(target)(*first, *args, **kwargs)
        return super().call(function, args, kwargs, f)

    @staticmethod
    def compilable(function: types.FunctionType) -> bool:
        name = function.__globals__.get("__name__", "")
        if name.partition(".")[0] in _UNTOUCHED or getattr(function, "_strata_compile_mark", None) or "<locals>" in function.__qualname__:
            return False
        return not function.__code__.co_flags & (0x20 | 0x80 | 0x200)

    def callee(self, function: types.FunctionType) -> Compiled:
        found = self.callees.get(id(function))
        if found is None:
            found = self.callees[id(function)] = (function, type(self.owner)(function, self.owner.options.for_callee()))
        return found[1]


def _stdlib() -> frozenset[str]:
    import sys

    return frozenset(sys.stdlib_module_names) - {"__main__"} | {"strata", "numpy", "pytest", "_pytest", "pluggy"}


_UNTOUCHED = _stdlib()


def plain_call(module: Any) -> bool:
    """Whether calling it is calling its forward."""
    from strata.nn.hooks import everywhere

    own = module.__dict__
    hooks = own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
    if hooks or everywhere.forward or everywhere.forward_pre or everywhere.backward or everywhere.backward_pre:
        return False
    return module._compiled_call_impl is None and calls_plainly(type(module))


def calls_plainly(kind: type) -> bool:
    """Whether its calls are those of modules; a graph module's differ in what they print of errors."""
    own = kind.__call__
    return own is strata.nn.Module.__call__ or (own.__module__ == "strata.fx.graph_module" and own.__qualname__ == "GraphModule.__call__")
