"""What programs say to the compiler: what not to compile, what is constant, when to compile anew."""

from __future__ import annotations

import sys
import threading

from strata import _lazy
from strata import compile as compile  # noqa: A004

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "graph_break",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "register_backend",
    "reset",
    "set_stance",
]

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")


def _marked(fn: Any, mark: str) -> Any:
    """A function that says so of itself."""
    target = getattr(fn, "__func__", fn)
    try:
        target._strata_compile_mark = mark
    except (AttributeError, TypeError):
        raise TypeError(f"expected a function of Python, got {type(fn).__name__}") from None
    return fn


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function, which is not compiled from now on: a compiled function that calls it stops before and goes on after.

    Without a function: a decorator. TypeError where it is none of Python.
    """
    if fn is None:
        return lambda function: _marked(function, "disable")
    inner = getattr(fn, "_torchdynamo_orig_callable", fn)
    return _marked(inner, "disable")


def allow_in_graph(fn: Any) -> Any:
    """The function, which is called as it is while it is captured: the operators that it runs are recorded, nothing of it
    is guarded."""
    return [_marked(f, "in graph") for f in fn] if isinstance(fn, (list, tuple)) else _marked(fn, "in graph")


def assume_constant_result(fn: Callable) -> Callable:
    """The function, whose result is a constant of what is captured."""
    return _marked(fn, "constant")


def graph_break(msg: str = "") -> None:
    """Ends a graph here. Nothing where nothing is compiled."""


class _Exports(threading.local):
    """How many exports of this thread are running a module."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1


_exports = _Exports()


def is_compiling() -> bool:
    """Whether what runs is being captured by export(). (In what compile() captures a call of this is the constant True.)"""
    return _exports.depth > 0


def is_dynamo_compiling() -> bool:
    """False: export() runs a module's own code. (In what compile() captures a call of this is the constant True.)"""
    return False


def is_exporting() -> bool:
    """Whether export() runs what runs."""
    return _exports.depth > 0


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that compile's `backend` takes."""
    return _lazy.load("strata._bytecode.backends").names()


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Makes a backend known by a name, its own as a rule: a function of (graph module, example inputs) that gives a function
    of the inputs. A decorator, too. ValueError where the name is taken."""
    return _lazy.load("strata._bytecode.backends").register(compiler_fn, name, tags)


def cudagraph_mark_step_begin() -> None:
    """Accepted: results of a compiled call keep their memory as long as they live, whatever is called next."""


def nested_compile_region(fn: Any = None, **_: Any) -> Any:
    """The function itself, or a decorator that gives it: regions that are equal share their kernels without a mark."""
    return fn if fn is not None else lambda function: function


def reset() -> None:
    """Forgets what was compiled: next calls are captured anew."""
    if "strata._bytecode.entry" in sys.modules:
        _lazy.load("strata._bytecode.entry").reset()


class set_stance:
    """When to compile: "default", "force_eager" (never), "eager_on_recompile" (only first calls), "fail_on_recompile",
    "eager_then_compile" (the first call runs as it is, later ones are compiled; also by the name "aot_eager_then_compile").

    Holds from the call on, or in a `with` block, or in the calls of a function that it decorates. ValueError for other names.
    All guards are asked always, whatever skip_guard_eval_unsafe says. NotImplementedError for force_backend; AssertionError where a
    compiled function calls it, or a function that it decorates.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in _STANCES:
            raise ValueError(f"set_stance: expected one of {', '.join(map(repr, _STANCES))}, got {stance!r}")
        if force_backend is not None:
            raise NotImplementedError("set_stance: force_backend is not there; give compile() its backend")
        self._api, self._stance = _lazy.load("strata._bytecode.api"), stance
        self._before = self._api.set_stance(stance)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._api.set_stance(self._before)

    def __call__(self, fn: Callable) -> Callable:
        """The function, which sets the stance for its time; the decorator itself leaves it as it was."""
        self._api.set_stance(self._before)
        functools = _lazy.load("functools")

        @functools.wraps(fn)
        def staying(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return _marked(staying, "forbidden")
