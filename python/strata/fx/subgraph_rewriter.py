"""Replacing a pattern wherever a graph has it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

from strata import nn

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .passes.utils.matcher_utils import InternalMatch

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was: anchor, its last node, and the graph's node of each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, with the nodes that are there instead."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule) -> list[Match]:
    """Replaces what computes `pattern` by `replacement`, a function of as many arguments and results, in gm's graph.

    Functions are traced. Arguments of the pattern stand for any values; values inside of it must not be read outside. Of
    overlapping places the first counts. gm is recompiled. Gives the places.
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(match.anchor, match.nodes_map) for match in found]


def _graph_of(what: Any) -> Graph:
    return what if isinstance(what, Graph) else what.graph if isinstance(what, GraphModule) else symbolic_trace(what).graph


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As replace_pattern, where all match_filters(match, graph, pattern's graph) are true.

    ignore_literals: constants in the pattern stand for any. replacement_callback: makes the replacement of each match.
    node_name_match: a node whose name holds it is like any of the pattern's last nodes.
    """
    from .passes.utils.matcher_utils import SubgraphMatcher

    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    pattern_graph = _graph_of(pattern)
    matches = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals).match(gm.graph, node_name_match)
    matches = [m for m in matches if all(fits(m, gm.graph, pattern_graph) for fits in match_filters or ())]
    fixed = None if replacement_callback is not None else _graph_of(replacement)
    became: dict[Node, Node] = {}
    done = []
    for match in matches:
        # What the match reads may have been replaced by an earlier one.
        match.placeholder_nodes = [became.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes]
        for pn, gn in match.nodes_map.items():
            if pn.op == "placeholder" and isinstance(gn, Node):
                match.nodes_map[pn] = became.get(gn, gn)
        made = fixed if fixed is not None else replacement_callback(match, gm.graph, pattern_graph)
        new_nodes, results = _insert(gm.graph, match, made)
        for old, new in zip(match.returning_nodes, results):
            old.replace_all_uses_with(new)
            became[old] = new
        for pn in reversed(pattern_graph.nodes):
            if pn.op not in ("placeholder", "output"):
                gm.graph.erase_node(match.nodes_map[pn])
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_over_attributes(gm, replacement)
    return done


def _insert(graph: Graph, match: InternalMatch, replacement: Graph) -> tuple[list[Node], tuple]:
    """Copies the replacement before the first reader of the match's results. Gives its nodes and its results."""
    inputs = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(match.placeholder_nodes)} arguments, its replacement {len(inputs)}; give both as many"
        )
    copies: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes))
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        place = min(users)
    else:
        place = max(match.returning_nodes).next
    with graph.inserting_before(place):
        results = graph.graph_copy(replacement, copies)
    results = (results,) if isinstance(results, Node) else tuple(results)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(match.returning_nodes)} results, its replacement {len(results)}; give both as many"
        )
    new = [n for n in copies.values() if isinstance(n, Node) and not any(n is given for given in match.placeholder_nodes)]
    return new, results


def _take_over_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Copies what new nodes name from the replacement, and deletes what no node names any more."""
    gm.delete_all_unused_submodules()

    def find(module: nn.Module, path: str) -> Any:
        place, _, name = path.rpartition(".")
        try:
            return getattr(module.get_submodule(place), name, None)
        except AttributeError:
            return None

    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or find(gm, node.target) is not None:
            continue
        value = find(replacement, node.target)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced '
                "attribute does not exist in the replacement GraphModule"
            )
        value = copy.deepcopy(value)
        if isinstance(value, nn.Module):
            gm.add_submodule(node.target, value)
        else:
            setattr(gm, node.target, value)
    gm.graph.lint()
