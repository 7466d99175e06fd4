"""Names by which programs reach PyTorch's capture of bytecode; strata.compiler has what they do."""

from __future__ import annotations

from types import SimpleNamespace

from strata import _lazy
from strata import compile as _compile
from strata.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    list_backends,
    register_backend,
    reset,
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
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "register_backend",
    "reset",
]

# Settings that programs write; none of them changes what is captured here.
config = SimpleNamespace(
    cache_size_limit=8, recompile_limit=8, accumulated_cache_size_limit=256, suppress_errors=False, verbose=False,
    automatic_dynamic_shapes=True, capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False,
)  # fmt: skip


def explain(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """explain(f)(*args): what compiling f would make of that call: graphs, breaks with their reasons, guards."""
    return _lazy.load("strata._bytecode.explain").explain(f, *args, **kwargs)


def optimize(backend: Any = "inductor", *, nopython: bool = False, **_: Any) -> Callable:
    """The decorator form of strata.compile; nopython is its fullgraph."""
    return lambda function: _compile(function, backend=backend, fullgraph=nopython)


def mark_dynamic(t: Any, index: Any, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002
    """Changes nothing: each size is compiled for itself in this version."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """As mark_dynamic."""


def mark_static(t: Any, index: Any = None) -> None:
    """Changes nothing: all sizes are static in this version."""
