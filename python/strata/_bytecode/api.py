"""strata.compile and what belongs to it."""

from __future__ import annotations

import functools
import types

import strata

from . import entry, values
from .decode import supported
from .guards import class_lookup
from .reasons import Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BACKENDS = ("inductor",)
_stance = "default"


class Options:
    """What strata.compile was asked for."""

    def __init__(self, fullgraph: bool, numerics: str):
        self.fullgraph, self.numerics = fullgraph, numerics

    @staticmethod
    def stance() -> str:
        return _stance

    def for_callee(self) -> Options:
        return Options(False, self.numerics)


def compile(  # noqa: A001
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if not callable(model):
        raise TypeError(f"compile: expected a function or a module, got {type(model).__name__}")
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(m for m in _MODES if m)}")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if disable:
        return model
    if not supported():
        import sys

        raise NotImplementedError(f"compile: Python {sys.version_info[0]}.{sys.version_info[1]} is not supported, 3.11 is; use strata.graph")
    if backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        if callable(backend):
            raise NotImplementedError(f"compile: backends that are functions are not there yet; expected one of {known}")
        raise RuntimeError(f"Invalid backend: {backend!r}, expected one of {known}")
    if dynamic:
        raise NotImplementedError("compile: dynamic=True is not there yet; leave it out: each shape is compiled for itself")
    known_options = {"numerics"}
    for name in options or {}:
        if name not in known_options:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {sorted(known_options)}")
    made = Options(fullgraph, (options or {}).get("numerics", "exact"))
    if values.is_module(model):
        return optimized_module(model, made)
    if isinstance(model, type):
        raise TypeError("compile: expected a function or a module, got a class; compile its methods, or an instance")
    return wrap(model, made)


def wrap(function: Callable, options: Options) -> Callable:
    """The compiled form of a function, a method, or an object that is called."""
    owner: tuple = ()
    target = function
    inner = getattr(target, "_strata_compiled", None)
    if inner is not None and isinstance(target, types.FunctionType):
        return target
    if isinstance(target, types.MethodType):
        target, owner = target.__func__, (target.__self__,)
    if not isinstance(target, types.FunctionType):
        method = class_lookup(type(target), "__call__")
        if not isinstance(method, types.FunctionType):
            if options.fullgraph:
                raise Unsupported(f"compile(fullgraph=True): a {type(function).__name__} has no bytecode")
            return function
        target, owner = method, (target,)
    compiled = entry.Compiled(target, options)
    if owner:
        (first,) = owner

        def call(*args: Any, **kwargs: Any) -> Any:
            return compiled(first, *args, **kwargs)
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            return compiled(*args, **kwargs)

    try:
        functools.update_wrapper(call, function)
    except (AttributeError, TypeError):
        pass
    call._strata_compiled = compiled  # type: ignore[attr-defined]
    call._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    call.guards = lambda: guards_table(compiled)  # type: ignore[attr-defined]
    return call


def optimized_module(model: Any, options: Options) -> Any:
    from .module import OptimizedModule

    return OptimizedModule(model, options)


def guards_table(compiled: entry.Compiled) -> str:
    """The guards of all entries: what each reads, what it expects, how often it held, and nanoseconds of a check."""
    lines = [f"{'source':40} {'condition':40} {'hits':>8} {'ns':>8}"]
    for table in (compiled.start, *compiled.tables.values()):
        for e in table.entries:
            lines.append(f"-- {compiled.function.__qualname__}, offset {table.offset}, {e.kind}, {e.hits} hits")
            for guard in e.guards.guards:
                shown = repr(guard).removeprefix(str(guard.source or "")).strip()
                lines.append(f"{guard.source!s:40} {shown[:60]:40} {e.hits:8}")
    return "\n".join(lines)


def set_stance(stance: str) -> str:
    global _stance
    before, _stance = _stance, stance
    return before


assert strata is not None
