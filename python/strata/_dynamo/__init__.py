"""Names by which programs reach PyTorch's capture of bytecode; strata.compiler has what they do."""

from __future__ import annotations

import sys

from strata import _lazy
from strata import compile as _compile
from strata._bytecode.config import config
from strata._bytecode.reasons import error_on_graph_break
from strata.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    list_backends,
    register_backend,
    reset,
    set_stance,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "error_on_graph_break",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "reset",
    "set_stance",
]

__getattr__, __dir__ = _lazy.of(globals(), {"eval_frame": "OptimizedModule"}, parts="_trace_wrapped_higher_order_op backends compiled_autograd eval_frame exc testing utils")
sys.modules[f"{__name__}.config"] = config  # import strata._dynamo.config


def explain(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """explain(f)(*args): what compiling f would make of that call: graphs, breaks with their reasons, guards."""
    return _lazy.load("strata._bytecode.explain").explain(f, *args, **kwargs)


def optimize(backend: Any = "inductor", *, nopython: bool = False, **_: Any) -> Callable:
    """The decorator form of strata.compile; nopython is its fullgraph."""
    return lambda function: _compile(function, backend=backend, fullgraph=nopython)


def mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002
    """What is compiled for that tensor leaves its size at `index` (an int or several) open, from the first call on.

    min, max: the sizes that it may have. Compiling raises ValueError, with the size, the range and the line, where the size is not in
    the range, or where what is compiled holds for a part of it alone, as it does where a loop runs over that size.
    IndexError for a dim that the tensor has not.
    """
    seen = _lazy.load("strata._bytecode.seen")
    seen.mark(t, index, seen.Mark("dynamic", min, max))


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """As mark_dynamic, where the program allows it: a size that it asks for is compiled for itself without an error."""
    seen = _lazy.load("strata._bytecode.seen")
    seen.mark(t, index, seen.Mark("maybe"))


def mark_static(t: Any, index: Any = None) -> None:
    """What is compiled for that tensor has its size at `index` (an int or several; all where None) fixed: each is compiled for itself."""
    seen = _lazy.load("strata._bytecode.seen")
    seen.mark(t, range(t.dim()) if index is None else index, seen.Mark("static"))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Accepted: what is compiled takes a tensor's memory from each call, and keeps no address of it."""


def lookup_backend(compiler_fn: str | Callable) -> Callable:
    """The backend of that name, a function of (graph module, example inputs). RuntimeError where there is none."""
    found = _lazy.load("strata._bytecode.backends").find(compiler_fn)
    return _lazy.load("strata._inductor.compile_fx").compile_fx if found is None else found
