"""Making one call of a submodule out of several nodes."""

from __future__ import annotations

import copy
from operator import getitem

from ...graph import Graph
from ...graph_module import GraphModule
from ..tools_common import stable_topological_sort
from .matcher_utils import _convex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...node import Node

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition"]


def topo_sort(nodes: list[Node]) -> list[Node]:
    """The nodes, each behind those of them that it reads, else in their order."""
    left, done = list(nodes), []
    inside = set(nodes)
    seen: set[Node] = set()
    while left:
        ready = next((n for n in left if all(read in seen or read not in inside for read in n._input_nodes)), None)
        if ready is None:
            raise AssertionError("topo_sort: the nodes read each other in a circle")
        left.remove(ready)
        seen.add(ready)
        done.append(ready)
    return done


def validate_partition(partition: list[Node]) -> bool:
    """Whether the nodes can become one: no value leaves them and comes back."""
    return _convex(set(partition))


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: Iterable[Node] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of these nodes in their order, what it reads of gm's graph, and which of the nodes are its results.

    AssertionError for nodes of another graph, erased ones, and where a value leaves them and comes back.
    """
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes if partition_lookup_table is None else partition_lookup_table)
    graph, inputs, made = Graph(), {}, {}

    def own(read: Node) -> Node:
        if read in inside:
            return made[read]
        if read not in inputs:
            inputs[read] = graph.placeholder(read.name, type_expr=read.type)
            inputs[read].meta = copy.copy(read.meta)
        return inputs[read]

    for node in nodes:
        made[node] = graph.node_copy(node, own)
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    outs = tuple(made[node] for node in results)
    graph.output(outs[0] if len(outs) == 1 and not always_return_tuple else outs)
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), tuple(results)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...], insertion_point: Node | None = None
) -> GraphModule:
    """Adds the submodule under its class's name, calls it behind the insertion point (the last of orig_outputs), and has it read for them."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    with gm.graph.inserting_after(max(orig_outputs) if insertion_point is None else insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(call.next):
        for i, old in enumerate(orig_outputs):
            old.replace_all_uses_with(gm.graph.call_function(getitem, (call, i)), propagate_meta=True)
    call.meta["val"] = tuple(old.meta.get("val") for old in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Erases nodes, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[Iterable[Node]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Makes a submodule, called prefix0, prefix1, ..., of each list of nodes. gm changes, and is given back."""
    for i, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, results = fuse_as_graphmodule(gm, nodes, f"{prefix}{i}", partition, always_return_tuple=always_return_tuple)
        insert_subgm(gm, made, inputs, results, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
