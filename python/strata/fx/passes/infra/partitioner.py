"""Parts of a graph that a backend supports, as large as they can be without reading each other in a circle."""

from __future__ import annotations

from ..._names import qualified_name
from ..utils.fuser_utils import fuse_by_partitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...graph_module import GraphModule
    from ...node import Node
    from ..operator_support import OperatorSupportBase

__all__ = ["CapabilityBasedPartitioner", "Partition"]

# Nodes that are no work: a part of these and one other is no part.
_FREE = {"strata.ops.aten.view", "strata.ops.aten.view.default", "_operator.getitem"}


class Partition:
    """Nodes that become one submodule."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.order = 0 if id is None else id  # of its last node, counted from the graph's end
        self.nodes: dict[Node, None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node) -> None:
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        del self.nodes[node]

    def size(self) -> int:
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Cuts a graph by what operator_support says of its nodes.

    allows_single_node_partition: else a part needs two calls of functions that are work. non_compute_ops: names of functions
    that are none. allowed_single_node_partition_ops: names of those that make a part alone. skip_horizontal_fusion: parts that
    share no value stay apart.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """The parts. From the last node on, each supported one joins what it can."""
        modules = dict(self.graph_module.named_modules())
        self._of: dict[Node, Partition] = {}
        parts: dict[int, Partition] = {}
        for node in reversed(self.graph_module.graph.nodes):
            mine = []
            if self.operator_support.is_node_supported(modules, node):
                mine = [Partition(len(self._of), [node])]
                parts[mine[0].id] = self._of[node] = mine[0]
            if self.skip_horizontal_fusion:
                others = [self._of[user] for user in node.users if user in self._of] if mine else []
            else:
                others = sorted(parts.values(), key=lambda part: part.order)
            candidates = list(dict.fromkeys([*mine, *others]))
            for other in candidates[1:]:
                candidates[0] = self._merged(candidates[0], other, parts)
        for part in parts.values():
            part.nodes = dict.fromkeys(sorted(part.nodes))
        self._keep_results_with_makers()
        kept = parts.values() if self.allows_single_node_partition else [p for p in parts.values() if self._works(p)]
        return [part for part in kept if part.nodes]

    def _merged(self, a: Partition, b: Partition, parts: dict[int, Partition]) -> Partition:
        """Both as one, the larger one; a where that would be read by what it reads."""
        inside = a.nodes.keys() | b.nodes.keys()
        waiting = [user for node in inside for user in node.users if user not in inside]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in inside:
                return a
            if node in seen:
                continue
            group = self._of[node].nodes if node in self._of else (node,)  # parts run as a whole
            seen.update(group)
            waiting.extend(user for member in group for user in member.users if user not in group)
        large, small = (a, b) if len(a.nodes) >= len(b.nodes) else (b, a)
        large.nodes.update(small.nodes)
        large.order = min(large.order, small.order)
        self._of.update(dict.fromkeys(small.nodes, large))
        del parts[small.id]
        return large

    def _keep_results_with_makers(self) -> None:
        """The elements of a tuple lie where the tuple is made."""
        for node in self.graph_module.graph.nodes:
            elements = [u for u in node.users if u.op == "call_function" and qualified_name(u.target) == "_operator.getitem"]
            if not elements or len(elements) < len(node.users):
                continue
            part = self._of.get(node)
            for user in elements:
                if self._of.get(user) is part:
                    continue
                if user in self._of:
                    self._of.pop(user).remove_node(user)
                if part is not None:
                    part.add_node(user)
                    self._of[user] = part

    def _works(self, part: Partition) -> bool:
        free = _FREE | set(self.non_compute_ops)
        names = [qualified_name(n.target) for n in part.nodes if n.op == "call_function"]
        return sum((name not in free) + (name in self.allowed_single_node_partition_ops) for name in names) > 1

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes nodes that are no work from the beginnings and ends of parts."""
        free = set(self.non_compute_ops)
        for part in partitions:
            for order, near in ((list(part.nodes), "_input_nodes"), (list(reversed(part.nodes)), "users")):
                for node in order:
                    idle = node.op == "call_function" and qualified_name(node.target) in free
                    if idle and not any(other in part.nodes for other in getattr(node, near)):
                        part.remove_node(node)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Makes a submodule of each part, called prefix0, prefix1, ...; the module changes, and is given back."""
        return fuse_by_partitions(self.graph_module, [part.nodes for part in partitions], prefix=prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Both in one."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
