"""Graphs of Python functions: not provided yet; `wrap` is a mark and does nothing."""

from __future__ import annotations

from strata._missing import missing_class, missing_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WAY_OUT = "use forward hooks to read or change what is inside a module; graphs come with strata.graph"

symbolic_trace = missing_function(__name__, "symbolic_trace", _WAY_OUT)
Graph = missing_class(__name__, "Graph", _WAY_OUT)
GraphModule = missing_class(__name__, "GraphModule", _WAY_OUT)
Interpreter = missing_class(__name__, "Interpreter", _WAY_OUT)
Node = missing_class(__name__, "Node", _WAY_OUT)
Proxy = missing_class(__name__, "Proxy", _WAY_OUT)
Tracer = missing_class(__name__, "Tracer", _WAY_OUT)
Transformer = missing_class(__name__, "Transformer", _WAY_OUT)


def wrap(fn_or_name: Any) -> Any:
    """What it is given: a mark for a tracer."""
    return fn_or_name
