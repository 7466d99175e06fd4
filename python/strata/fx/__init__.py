"""Graphs of Python functions: traced with stand-ins for tensors, read, changed, and printed as Python code again.

`symbolic_trace` gives a `GraphModule`, whose `graph` is a list of `Node`s of six kinds; `from_graph` gives one of a captured
strata.graph. Names are loaded when they are first used.
"""

from __future__ import annotations

from strata import _lazy

_NAMES = {
    "_from_graph": "from_graph",
    "_symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace wrap",
    "graph": "CodeGen Graph PythonCode",
    "graph_module": "GraphModule",
    "immutable_collections": "immutable_dict immutable_list",
    "interpreter": "Interpreter Transformer",
    "node": "Node has_side_effect map_aggregate map_arg",
    "proxy": "Attribute Proxy TraceError",
    "subgraph_rewriter": "Match replace_pattern replace_pattern_with_filters",
}
_MODULES = "_compatibility _pytree _symbolic_trace experimental graph graph_module immutable_collections interpreter node operator_schemas passes proxy subgraph_rewriter traceback"
__getattr__, __dir__ = _lazy.of(globals(), _NAMES, _MODULES)
