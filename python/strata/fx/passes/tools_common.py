"""What several passes use: the name of what a node calls, and orders of nodes."""

from __future__ import annotations

import heapq
from collections import deque

from .._names import qualified_name
from ..graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from strata import nn

    from ..graph_module import GraphModule
    from ..node import Node

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "legalize_graph", "stable_topological_sort"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """What a call calls: "strata.relu", "strata.nn.modules.linear.Linear", or a method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        kind = type(submodules[node.target])
        return f"{kind.__module__}.{kind.__name__}"
    return qualified_name(node.target) if node.op == "call_function" else node.target


def _waiting(graph: Graph) -> dict[Node, int]:
    """Of each node, how many that it reads."""
    return {node: len(node._input_nodes) for node in graph.nodes}


def _put(gm: GraphModule, order: list[Node], waiting: dict[Node, int]) -> GraphModule:
    if len(order) < len(waiting):
        raise RuntimeError(f"Input graph has cycles, unable to add {[node for node, n in waiting.items() if n]}")
    graph, made = Graph(tracer_cls=gm.graph._tracer_cls), {}
    for node in order:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Orders a module's graph so that each node stands behind those that it reads, those that wait for least first.

    RuntimeError where nodes read each other in a circle.
    """
    waiting = _waiting(gm.graph)
    queue = deque(node for node, n in waiting.items() if n == 0)
    order = []
    while queue:
        node = queue.popleft()
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                # Operators of Python come at once: they are numbers as a rule.
                early = user.op == "call_function" and getattr(user.target, "__module__", "") == "_operator"
                (queue.appendleft if early and user.target.__name__ in _EARLY else queue.append)(user)
    return _put(gm, order, waiting)


_EARLY = {"add", "mul", "sub", "floordiv", "truediv", "mod", "le", "lt", "ge", "gt", "eq", "ne"}


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """The same, with nodes as near to their old order as that allows."""
    waiting = _waiting(gm.graph)
    places = {node: i for i, node in enumerate(waiting)}
    ready = [(places[node], node) for node, n in waiting.items() if n == 0]
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (places[user], user))
    return _put(gm, order, waiting)
