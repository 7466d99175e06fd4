"""Cuts a joint graph into that of the forward and that of the backward."""

from __future__ import annotations

from strata.fx import Graph, GraphModule
from strata.fx.node import map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["default_partition"]


def default_partition(joint_module: GraphModule, _joint_inputs: Any = None, *, num_fwd_outputs: int, num_primals: int) -> tuple[GraphModule, GraphModule]:
    """(forward, backward) of a joint graph, whose inputs are num_primals arguments and then the gradients of results.

    The forward gives the results and what the backward needs of it; the backward takes that and the gradients. All that does
    not hang on gradients is computed in the forward, nothing twice.
    """
    nodes = list(joint_module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    tangents, of_backward = inputs[num_primals:], set(inputs[num_primals:])
    for node in nodes:
        if node.op not in ("placeholder", "output") and any(n in of_backward for n in node.all_input_nodes):
            of_backward.add(node)
    (results,) = next(n for n in nodes if n.op == "output").args
    outputs, grads = list(results[:num_fwd_outputs]), list(results[num_fwd_outputs:])
    needed = {n: None for node in nodes if node in of_backward for n in node.all_input_nodes}
    needed.update((g, None) for g in grads if g is not None)
    saved = [n for n in needed if n not in of_backward and n.op != "get_attr"]

    forward, at = Graph(), {}
    for node in nodes:
        if node.op != "output" and node not in of_backward:
            at[node] = forward.node_copy(node, at.__getitem__)
    forward.output(map_arg((*outputs, *saved), at.__getitem__))

    backward, at = Graph(), {}
    for node in (*saved, *tangents):
        at[node] = backward.placeholder(node.name)
        at[node].meta = dict(node.meta)
    for node in nodes:
        if (node in of_backward and node not in tangents) or (node.op == "get_attr" and node in needed):
            at[node] = backward.node_copy(node, at.__getitem__)
    backward.output(map_arg(tuple(grads), at.__getitem__))
    return GraphModule(joint_module, forward), GraphModule(joint_module, backward)
