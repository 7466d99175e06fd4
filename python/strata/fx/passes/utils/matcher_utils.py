"""Finding where a graph has the form of a smaller one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import strata

from ...graph_module import _get_attr
from ...node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...graph import Graph

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place in a graph: nodes_map gives the graph's node, or constant, of each of the pattern.

    anchors: the pattern's last nodes. placeholder_nodes, returning_nodes: the graph's values in the pattern's order.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes))


def _inner(node: Node) -> bool:
    return node.op not in ("placeholder", "output")


def _convex(nodes: set[Node]) -> bool:
    """Whether no value leaves the nodes and comes back to them, so that they can become one."""
    waiting = [user for node in nodes for user in node.users if user not in nodes]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in nodes:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(node.users)
    return True


class SubgraphMatcher:
    """Matches a pattern. Its placeholders stand for any value, but for one value each.

    match_output: the pattern's output must be the graph's. match_placeholder: placeholders stand for placeholders.
    remove_overlapping_matches: of matches that share a node the first counts. ignore_literals: constants may differ.

    ValueError for an empty pattern, AssertionError for one in which something is computed that nothing reads.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(n.op != "output" and not n.users and not n.is_impure() for n in pattern.nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]

    # ---- whether nodes are alike

    def _alike(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            mine, other = _get_attr(pn.graph.owning_module, pn.target), _get_attr(gn.graph.owning_module, gn.target)
            if type(mine) is type(other) and not isinstance(mine, strata.Tensor):
                raise RuntimeError(f"Unsupported type {mine} when matching attributes")
            return type(mine) is type(other)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _values_match(self, p: Any, g: Any, match: InternalMatch) -> bool:
        """Arguments: nodes, constants, and lists and tuples of them."""
        if isinstance(p, Node) and isinstance(g, Node):
            return self._match_nodes(p, g, match)
        if isinstance(p, (list, tuple)) and isinstance(g, (list, tuple)):
            return len(p) == len(g) and all(self._values_match(a, b, match) for a, b in zip(p, g))
        if isinstance(p, Node):
            if p.op == "placeholder":  # which may stand for a constant
                return match.nodes_map.setdefault(p, g) == g
            return self.ignore_literals
        return (not isinstance(g, Node) and type(p) is type(g) and p == g) or self.ignore_literals

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether the pattern's node may be the graph's, and all that it reads; what was found is noted in match."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is other for other in match.nodes_map.values()) or not self._alike(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        arguments = self._arguments(pn, gn)
        return arguments is not None and self._values_match(*arguments, match)

    @staticmethod
    def _arguments(pn: Node, gn: Node) -> tuple[list, list] | None:
        """Both nodes' arguments in one order; None where they differ in number or names."""
        if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
            return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
        if pn.op == "call_function" and isinstance(pn.target, strata.ops.OpOverload):
            schema = pn.target._schema.arguments

            def filled(node: Node) -> list:
                given = dict(zip((a.name for a in schema), node.args)) | dict(node.kwargs)
                return [given.get(a.name, a.default_value) for a in schema]

            return filled(pn), filled(gn)
        return None

    # ---- places

    def _from(self, anchors: list[tuple[Node, list[Node]]], match: InternalMatch, name: str) -> Iterator[InternalMatch]:
        if not anchors:
            match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
            yield match
            return
        (anchor, candidates), *rest = anchors
        for node in candidates:
            found = copy.copy(match)
            if self._match_nodes(anchor, node, found, name):
                yield from self._from(rest, found, name)

    def _contained(self, match: InternalMatch) -> bool:
        """Whether only the pattern's results are read outside of the match."""
        inner = {gn for pn, gn in match.nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inner
            for pn, gn in match.nodes_map.items()
            if pn.op != "placeholder" and pn not in self.pattern_returning_nodes
            for user in gn.users
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places in a graph, in its order."""
        anchors = []
        for anchor in self.pattern_anchors:
            candidates = [node for node in graph.nodes if self._alike(anchor, node, node_name_match)]
            if candidates:
                anchors.append((anchor, candidates))
        found = []
        taken: set[Node] = set()
        for match in self._from(anchors, InternalMatch(self.pattern_anchors), node_name_match) if anchors else ():
            inner = {gn for pn, gn in match.nodes_map.items() if _inner(pn)}
            if not self._contained(match) or not _convex(inner):
                continue
            if self.remove_overlapping_matches:
                if taken & inner:
                    continue
                taken |= inner
            found.append(match)
        return found
