"""Cutting a graph into submodules."""

from __future__ import annotations

from inspect import Signature
from operator import getitem as _getitem

from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import nn

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: the names of its nodes, of values that it reads from other parts and gives to them, and its graph."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        # Ordered sets.
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


class _Splitter:
    def __init__(self, module: GraphModule, part_of: Callable[[Node], Any], affix: str | None) -> None:
        self.module = module
        self.parts: dict[str, Partition] = {}
        self.place: dict[Node, Partition] = {}
        self.nodes = {node.name: node for node in module.graph.nodes}
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                name = str(part_of(node)) if affix is None else f"{affix}_{part_of(node)}"
                part = self.parts.setdefault(name, Partition(name))
                part.node_names.append(node.name)
                self.place[node] = part
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "get_attr"):
                map_arg((node.args, node.kwargs), lambda read, node=node: self.note_use(read, node))

    def note_use(self, read: Node, user: Node) -> Node:
        made, used = self.place.get(read), self.place.get(user)
        if made is not used:
            if made is not None:
                made.outputs.setdefault(read.name)
            if used is not None:
                used.inputs.setdefault(read.name)
            if made is not None and used is not None:
                made.dependents.setdefault(used.name)
                used.dependencies.setdefault(made.name)
        return read

    def order(self) -> list[Partition]:
        """Each part behind those that it reads. RuntimeError where there is no such order."""
        waiting = {name: dict(part.dependencies) for name, part in self.parts.items()}
        free = [name for name, before in waiting.items() if not before]
        found = []
        while free:
            part = self.parts[free.pop()]
            found.append(part)
            for name in part.dependents:
                del waiting[name][part.name]
                if not waiting[name]:
                    free.append(name)
        if len(found) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return found

    def inputs(self, part: Partition, keep_names: bool) -> None:
        """Gives a part's graph its arguments. Modules that it reads are attributes of its own."""
        modules = [name for name in part.inputs if self.is_module(self.nodes[name])]
        values = [name for name in part.inputs if name not in modules]
        for i, name in enumerate(values + modules):
            source = self.nodes[name]
            if name in modules:
                made = part.graph.get_attr(source.target)
                part.targets[source.target] = _get_attr(self.module, source.target)
            else:
                made = part.graph.placeholder(name if keep_names else f"arg_{i}", type_expr=source.type)
            made.meta = source.meta.copy()
            part.environment[source] = made
        part.inputs = dict.fromkeys(values)

    def is_module(self, node: Node) -> bool:
        from strata import nn

        return node.op == "get_attr" and isinstance(_get_attr(self.module, node.target), nn.Module)

    def fill(self, qualname_map: dict[str, str] | None, keep_names: bool) -> None:
        """Copies the nodes into the graphs of their parts."""
        for node, part in self.place.items():
            target = node.target
            if node.op == "call_module":
                target = node.target.replace(".", "_")
                part.targets[target] = _get_attr(self.module, node.target)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = node.target
            args = map_arg(node.args, part.environment.__getitem__)
            kwargs = map_arg(node.kwargs, part.environment.__getitem__)
            name = node.name if keep_names else None
            made = part.graph.create_node(node.op, target, args, kwargs, name=name, type_expr=node.type)
            made.meta = node.meta.copy()
            part.environment[node] = made


def split_module(
    m: GraphModule,
    root_m: nn.Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls submodules submod_0, submod_1, ..., whose nodes are those that split_callback gave that number.

    qualname_map: gets the old path of each submodule by its new one. keep_original_order: parts are called in the order of
    their first nodes, else by what they read. keep_original_node_name, keep_original_input_name: names stay. partition_affix:
    before the number in names. tuple_return: parts with one result give a tuple, too. root_m is not read.

    RuntimeError where parts would read each other in a circle.
    """
    splitter = _Splitter(m, split_callback, partition_affix)
    ordered = splitter.order()
    for part in ordered:
        splitter.inputs(part, keep_original_input_name)
    splitter.fill(qualname_map, bool(keep_original_node_name))

    base, values, attributes = Graph(), {}, {}

    def take_over(node: Node) -> None:
        if node.name in values or node.op not in ("placeholder", "get_attr"):
            return
        if node.op == "get_attr":
            attributes[node.target] = _get_attr(m, node.target)
            made = base.get_attr(node.target)
        elif keep_original_node_name:
            made = base.create_node("placeholder", node.name, node.args, type_expr=node.type)
        else:
            default = node.args[0] if node.args else Signature.empty
            made = base.placeholder(node.target, type_expr=node.type, default_value=default)
        made.meta = node.meta.copy()
        values[node.name] = made

    for node in m.graph.nodes:  # in the original order, attributes come where they are read first
        if not keep_original_order or node.op == "placeholder":
            take_over(node)
    for part in splitter.parts.values() if keep_original_order else ordered:
        results = tuple(part.environment[splitter.nodes[name]] for name in part.outputs)
        single = len(results) == 1 and not tuple_return
        part.graph.output(results[0] if single else results)
        for name in part.inputs:
            take_over(splitter.nodes[name])
        attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        call = base.call_module(part.submod_name, tuple(values[name] for name in part.inputs))
        for i, name in enumerate(part.outputs):
            values[name] = call if single else base.call_function(_getitem, (call, i))
    for node in m.graph.nodes:
        take_over(node)
    base.output(map_arg(m.graph.output_node().args[0], lambda node: values[node.name]))
    made = GraphModule(attributes, base)
    made.meta["partition_names"] = {part.submod_name for part in splitter.parts.values()}
    return made
