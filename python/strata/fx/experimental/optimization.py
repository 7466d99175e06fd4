"""Changes of models for inference: batch norm folded into the layer before it, dropout left out."""

from __future__ import annotations

import copy

from strata import nn
from strata.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def _parent_name(target: str) -> tuple[str, str]:
    """("a.b", "c") of "a.b.c"."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, nn.Module]) -> bool:
    """Whether the node calls a module of the pattern's last class on what one of its first class gave."""
    if not node.args:
        return False
    return all(
        isinstance(n, Node) and n.op == "call_module" and type(modules.get(n.target)) is expected
        for expected, n in zip(pattern, (node.args[0], node))
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Puts another module where the node's is."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """The traced model with each batch norm folded into the convolution or linear layer before it. For evaluation mode.

    inplace: the model's own layers are replaced. no_trace: model is a GraphModule, which is taken as it is.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    patterns = [(nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d), (nn.Linear, nn.BatchNorm1d)]
    for pattern in patterns:
        folded = fuse_linear_bn_eval if pattern[0] is nn.Linear else fuse_conv_bn_eval
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            before = node.args[0]
            norm = modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(before, modules, folded(modules[before.target], norm))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """The traced model without its Dropout layers."""

    class WithoutDropout(Transformer):
        def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
            return args[0] if isinstance(self.submodules[target], nn.Dropout) else super().call_module(target, args, kwargs)

    return WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """These nodes as a module: a function of `inputs` that gives the list of `outputs`."""
    graph = Graph()
    made: dict[Node, Node] = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph.output([made[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
