"""strata.compile and what belongs to it."""

from __future__ import annotations

import types

import strata

from . import backends, entry, values
from .guards import class_lookup
from .natives import of_strata
from .versions import known_versions, supported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# All but the first are hints at how kernels are chosen, as `mode` is: accepted, without effect.
_OPTIONS = (
    "numerics",
    "coordinate_descent_tuning",
    "epilogue_fusion",
    "fallback_random",
    "layout_optimization",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "shape_padding",
    "triton.cudagraphs",
)
_stance = "default"


class Options:
    """What strata.compile was asked for."""

    def __init__(
        self,
        fullgraph: bool,
        numerics: str,
        backend: Callable | None = None,
        backend_options: dict | None = None,
        dynamic: bool | None = None,
    ):
        self.fullgraph, self.numerics, self.backend, self.dynamic = fullgraph, numerics, backend, dynamic
        self.backend_options = backend_options or {}

    @staticmethod
    def stance() -> str:
        return _stance

    def for_callee(self) -> Options:
        return Options(False, self.numerics, self.backend, self.backend_options, self.dynamic)


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

        raise NotImplementedError(f"compile: Python {sys.version_info[0]}.{sys.version_info[1]} is not supported; of CPython {known_versions()} are. Use strata.graph")
    chosen = backends.find(backend)
    if chosen is not None:
        more = {name: value for name, value in (("mode", mode), ("options", options)) if value is not None}
        made = Options(fullgraph, "exact", chosen, more, dynamic)
    else:
        for name in options or {}:
            if name not in _OPTIONS:
                raise RuntimeError(f"Unexpected optimization option {name}, known options are {list(_OPTIONS)}")
        made = Options(fullgraph, (options or {}).get("numerics", "exact"), dynamic=dynamic)
    if values.is_module(model):
        return optimized_module(model, made)
    if isinstance(model, type):
        raise TypeError("compile: expected a function or a module, got a class; compile its methods, or an instance")
    return wrap(model, made)


def wrap(function: Callable, options: Options) -> Callable:
    """The compiled form of a function, a method, or an object that is called."""
    owner: tuple = ()
    target = function
    if isinstance(target, entry.CompiledFunction):
        return target
    if isinstance(target, types.MethodType):
        target, owner = target.__func__, (target.__self__,)
    if not isinstance(target, types.FunctionType):
        method = class_lookup(type(target), "__call__")
        target, owner = (method, (target,)) if isinstance(method, types.FunctionType) else (calling(function), ())
    elif (home := values.strata_module_name(target)) and not owner and of_strata(home, target) == "operator":
        target = calling(function)
    call = entry.CompiledFunction(entry.Compiled(target, options), owner)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(function, name):
            call.__dict__[name] = getattr(function, name)
    if isinstance(own := getattr(function, "__func__", function), types.FunctionType):
        call.__dict__.update(vars(own))
    call.__dict__.update({"__wrapped__": function, "_torchdynamo_orig_callable": function})
    return call


def calling(function: Callable) -> types.FunctionType:
    """A function that calls one which is captured by its calls alone: an operator, or a built-in function."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def optimized_module(model: Any, options: Options) -> Any:
    from .module import OptimizedModule

    return OptimizedModule(model, options)


def set_stance(stance: str) -> str:
    global _stance
    before, _stance = _stance, stance
    entry.refresh()
    return before


assert strata is not None
