"""Calls of modules: those of strata's own are called as they are, and what such a call reads is watched."""

from __future__ import annotations

import sys

import strata

from . import values
from .callees import calls_plainly
from .guards import Watch, class_lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_optimized(obj: Any) -> bool:
    """A module that was compiled."""
    return type(obj).__name__ == "OptimizedModule" and type(obj).__module__ == "strata._bytecode.module"


def _is_foreign(value: Any) -> bool:
    """A function or another callable of the program's, such as an activation or a distance that a module was made with."""
    if not callable(value) or isinstance(value, (type, *values.BUILTIN_FUNCTIONS)):
        return False
    function = getattr(value, "__func__", value)
    return not (values.strata_module_name(function) or values.strata_module_name_of(type(value)))


def is_whole(module: Any) -> bool:
    """Whether a module and all below are strata's own, without hooks, so that its call reads its tree and nothing else."""
    everywhere = sys.modules["strata.nn.hooks"].everywhere
    if everywhere.forward or everywhere.forward_pre or everywhere.backward or everywhere.backward_pre:
        return False
    for m in module.modules():
        kind = type(m)
        if not kind.__module__.startswith("strata.nn.") or kind.__name__.startswith("Lazy"):
            return False
        own = m.__dict__
        if any(_is_foreign(value) for value in own.values()):
            return False
        if any(own[name] for name in HOOKS) or "forward" in own or m._compiled_call_impl is not None or "parametrizations" in m._modules:
            return False
        for p in m._parameters.values():
            if p is not None and p._backward_hooks:
                return False
        if any(t is not None and not values.is_plain_tensor(t) for held in (m._parameters, m._buffers) for t in held.values()):
            return False
    return True


def watch_of(module: Any) -> Watch:
    """What the call of such a module reads."""
    watch = Watch()
    for m in module.modules():
        own = m.__dict__
        watch.dict(own)
        for name in ("_parameters", "_buffers", "_modules", *HOOKS):
            watch.dict(own[name])
        for t in (*m._parameters.values(), *m._buffers.values()):
            watch.tensor(t)
    everywhere = sys.modules["strata.nn.hooks"].everywhere
    for registry in (everywhere.forward, everywhere.forward_pre, everywhere.backward, everywhere.backward_pre):
        watch.dict(registry)
    return watch


class Modules:
    def call_module(self, module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if is_optimized(module):
            return self.call_module(self.original_called(module), args, kwargs)
        if id(module) in self.fresh_objects and is_whole(module) and not any(self.is_outside(m) for m in module.modules()):
            return self.call_operator(module, args, kwargs)
        if self.is_outside(module) and is_whole(module) and not self.touched(module) and self.seen.stays(module, self.known[id(module)]):
            self.guards.add("watch", None, self.watched(module))
            return self.call_operator(module, args, kwargs)
        method = class_lookup(type(module), "__call__")
        self.guard_class(type(module), "__call__", method)
        return self.inline(strata.nn.Module.__call__ if calls_plainly(type(module)) else method, (module, *args), kwargs)

    def touched(self, module: Any) -> bool:
        """Whether the capture wrote attributes of one of its modules."""
        if not self.attributes:
            return False
        inner = {id(m) for m in module.modules()}
        return any(owner in inner for owner, _ in self.attributes)

    def watched(self, module: Any) -> Any:
        table = self.__dict__.setdefault("_watched", {})
        if id(module) not in table:
            source = self.known[id(module)]
            self.guards.add("is", source, module)
            table[id(module)] = watch_of(module)
            for kind in {type(m) for m in module.modules()}:
                for name in ("forward", "__call__"):
                    self.guard_class(kind, name, class_lookup(kind, name))
                self.library.kinds((kind,))
        return table[id(module)]
