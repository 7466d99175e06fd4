"""Backends of strata.compile: what makes a callable of a captured graph."""

from __future__ import annotations

import strata

from .config import config
from .reasons import BackendCompilerFailed, Break, warn
from .region import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .region import Region

DEFAULT = "inductor"
_registered: dict[str, Callable] = {}
_GROUP = "strata_compile_backends"  # of entry points


def eager(gm: Any, example_inputs: list, **_: Any) -> Callable:
    """The graph's operators one by one."""
    return gm.forward


# Names of PyTorch that differ in what they make of the graph on other devices only, or before it is run.
_registered.update(dict.fromkeys(("eager", "aot_eager", "aot_eager_decomp_partition", "cudagraphs"), eager))


def register(compiler_fn: Callable | None = None, name: str | None = None, tags: tuple = ()) -> Any:
    """Makes a backend known by a name, its own as a rule. ValueError where the name is taken."""
    if compiler_fn is None:
        return lambda fn: register(fn, name, tags)
    name = name or compiler_fn.__name__
    if name in _registered or name == DEFAULT:
        raise ValueError(f"register_backend: {name!r} is a backend already")
    _registered[name] = compiler_fn
    return compiler_fn


def names() -> list[str]:
    return sorted({DEFAULT, *_registered, *(e.name for e in _entry_points())})


def _entry_points() -> list:
    from importlib.metadata import entry_points

    return list(entry_points(group=_GROUP))


def find(backend: str | Callable) -> Callable | None:
    """The backend; None for the default one. RuntimeError for a name that is none, TypeError for what cannot be called."""
    if callable(backend):
        return backend
    if not isinstance(backend, str):
        raise TypeError(f"compile: expected a backend's name or a function, got {type(backend).__name__}")
    if backend == DEFAULT:
        return None
    if backend in _registered:
        return _registered[backend]
    for point in _entry_points():
        if point.name == backend:
            return _registered.setdefault(backend, point.load())
    raise RuntimeError(f"Invalid backend: {backend!r}, expected one of {', '.join(map(repr, names()))}")


def callable_of(region: Region, options: Any, inputs: list) -> Callable:
    """What a captured stretch calls: with its inputs, for a tuple of its tensors."""
    if options.backend is None:
        return compiled(region, options.numerics)
    from strata.fx._from_graph import graph_module, holds_gradients

    region.stop()
    if region._tangent_of and holds_gradients(region):
        # Run, its nodes would be recorded for a backward as the forward's are.
        raise Break("a result is computed of gradients and has one itself, for a backend of the program's own")
    learns = bool(region._tangent_of)
    try:
        module = graph_module(region, strata.is_grad_enabled() if learns else None)
    except NotImplementedError as why:
        raise Break(f"{why}, for a backend of the program's own") from None
    name = getattr(options.backend, "__name__", repr(options.backend))
    try:
        made = options.backend(module, list(inputs), **options.backend_options)
    except Exception as error:
        text = f"backend={name!r} raised:\n{type(error).__name__}: {error}"
        if config.suppress_errors:
            warn(f"strata.compile: {text}\nThe function runs as it is")
            raise Break(text) from None
        raise BackendCompilerFailed(text, name, error) from error
    if not callable(made):
        raise BackendCompilerFailed(f"backend={name!r} must return a function of the graph's inputs, got {type(made).__name__}", name)
    read = region._modes.check if region._modes.slots else None

    def call(*tensors: Any) -> Any:
        recorded, cast = strata.is_grad_enabled(), strata.is_autocast_enabled("cpu")
        if read is not None:  # numbers of optimisers, which the module has as tensors
            read()
        try:
            if not learns:
                strata._C._set_grad_enabled(False)
            if cast:  # casts are nodes
                strata.set_autocast_enabled("cpu", False)
            return made(*tensors)
        finally:  # also where a node raises behind one that turned recording off
            strata._C._set_grad_enabled(recorded)
            if cast:
                strata.set_autocast_enabled("cpu", True)

    return call


def direct(graph: Any) -> Callable:
    """The graph as it is called fastest, where tensors are all that a call is of."""
    return _plain(graph, 1) or graph


def single(graph: Any) -> Callable | None:
    """The same of a graph whose one result is given as it is."""
    return _plain(graph, 0) if hasattr(graph, "_source") and graph._source._results.count == 1 else None


def silent(graph: Any) -> Callable | None:
    """The same of a graph whose results nobody wants: it gives None."""
    return _plain(graph, 3)


def _plain(graph: Any, form: int) -> Any:
    if not isinstance(graph, strata._C._Compiled):
        return None
    source = graph._source
    if source._step or source._results.inputs:
        return None
    made = strata._C._Compiled()
    made._plain(graph._handle, form, source._results.order, source._modes.check if source._modes.slots else None)
    return made
