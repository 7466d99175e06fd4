"""Constant folding: what a module computes of its parameters and constants alone is computed once."""

from __future__ import annotations

import re
from operator import getitem

import strata
from strata import nn

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module whose constants are computed by const_subgraph_module, at the first call or by run_folding()."""

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cpu",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name, self.device_for_folded_attrs = fx_const_folded_attrs_name, device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes the constants. AssertionError where it has been done."""
        if self.const_subgraph_module is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        made = self.const_subgraph_module()

        def parameter(value: Any) -> nn.Parameter:
            if not isinstance(value, strata.Tensor):
                return nn.Parameter(strata.tensor([float(value)], device=self.device_for_folded_attrs), requires_grad=False)
            return nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)

        folded = nn.ParameterList(map(parameter, made)) if isinstance(made, tuple) else parameter(made)
        setattr(self, self.fx_const_folded_attrs_name, folded)


def get_unique_attr_name_in_module(mod_traced: nn.Module, name: str) -> str:
    """A name like that one that the module does not have."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        base, _, number = name.rpartition("_")
        name = f"{base}_{int(number) + 1}" if base and number.isdigit() else f"{name}_1"
    return name


def _constants(gm: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    """Nodes that are computed of the module's attributes alone, and neither draw nor write."""
    found: set[Node] = set()
    for node in gm.graph.nodes:
        inputs = node.op in ("placeholder", "output") or (node.op != "get_attr" and not found.issuperset(node._input_nodes))
        if not inputs and not (skip and skip(node)) and not node.is_impure() and not _acts(gm, node):
            found.add(node)
    return found


def _acts(gm: GraphModule, node: Node) -> bool:
    """Whether it calls a graph module that writes or draws."""
    inner = gm.get_submodule(node.target) if node.op == "call_module" else None
    return isinstance(inner, GraphModule) and any(
        n.op not in ("placeholder", "output") and (n.is_impure() or _acts(inner, n)) for n in inner.graph.nodes
    )


def split_const_subgraphs(
    module: nn.Module, skip_folding_node_fn: Callable[[Node], bool] | None = None, device_for_folded_attrs: str = "cpu"
) -> FoldedGraphModule:
    """The module, traced if it is not yet, with what is constant apart.

    skip_folding_node_fn: nodes for which it is true are no constants. Parameters that change later are not seen.
    """
    gm = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constants(gm, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(gm, gm.graph)
    const_graph, graph = Graph(), Graph()
    graph._codegen = gm.graph._codegen
    made = {node: None for node in constant}
    for node in gm.graph.nodes:
        if node in constant:
            made[node] = const_graph.node_copy(node, made.__getitem__)
    wanted = [n for n in gm.graph.nodes if n in constant and n.op != "get_attr" and any(user not in constant for user in n.users)]
    const_graph.output(made[wanted[0]] if len(wanted) == 1 else tuple(made[n] for n in wanted))
    const_graph.eliminate_dead_code()

    name = get_unique_attr_name_in_module(gm, "_FX_CONST_FOLDED_ATTRS")
    setattr(gm, name, nn.ParameterList() if len(wanted) > 1 else nn.Parameter(strata.empty(0)))
    copies: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and any(user not in constant for user in node.users)):
            copies[node] = graph.node_copy(node)
    folded = graph.get_attr(name)
    for i, node in enumerate(wanted):
        copies[node] = folded if len(wanted) == 1 else graph.call_function(getitem, (folded, i))
        copies[node].meta = node.meta.copy()
    for node in gm.graph.nodes:
        if node not in copies and node not in constant:
            args, kwargs = map_arg(node.args, copies.__getitem__), map_arg(node.kwargs, copies.__getitem__)
            copies[node] = graph.create_node(node.op, node.target, args, kwargs, type_expr=node.type)
            copies[node].meta = node.meta.copy()
    made_module = FoldedGraphModule(gm, graph, const_graph, name, device_for_folded_attrs)
    delattr(gm, name)
    return made_module
