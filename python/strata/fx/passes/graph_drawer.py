"""Pictures of graphs of fx, drawn without other programs."""

from __future__ import annotations

from contextlib import suppress
from hashlib import md5
from itertools import chain

import strata
from strata import nn

from .._codegen import stack_summary
from .._names import qualified_name, target_name
from ..graph_module import GraphModule, _get_attr
from ..node import Node, format_arg
from ..operator_schemas import normalize_function
from . import _dot
from .shape_prop import TensorMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FxGraphDrawer"]

_FILL = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
# Of calls, by what is called.
_FILLS = (
    "CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 MistyRose2 "
    "PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1"
).split()


def _escaped(text: str) -> str:
    """Braces mean something in a label."""
    return text.replace("{", r"\{").replace("}", r"\}")


class FxGraphDrawer:
    """Draws a graph module: FxGraphDrawer(gm, "name").get_dot_graph().write_svg("name.svg").

    ignore_getattr: without get_attr nodes. ignore_parameters_and_buffers: without boxes for what submodules hold.
    skip_node_names_in_args: arguments that are nodes are arrows alone. parse_stack_trace: with the user's lines.
    dot_graph_shape: the shape of boxes in the DOT text. normalize_args: arguments of functions by name, defaults too.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name, self._normalize = name, normalize_args
        self.dot_graph_shape = dot_graph_shape or "record"
        self._attributes, self._weights = not ignore_getattr, not ignore_parameters_and_buffers
        self._skip_nodes, self._lines = skip_node_names_in_args, parse_stack_trace
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                inner = _get_attr(graph_module, node.target)
                if isinstance(inner, GraphModule):
                    full = f"{name}_{node.target}"
                    self._dot_graphs[full] = self._drawn(inner, full)

    def get_dot_graph(self, submod_name: str | None = None) -> _dot.Dot:
        """The drawing of the module, or of a submodule that is a GraphModule."""
        return self._dot_graphs[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> _dot.Dot:
        """The drawing of the module."""
        return self.get_dot_graph()

    def get_submod_dot_graph(self, submod_name: str) -> _dot.Dot:
        """The drawing of a submodule."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, _dot.Dot]:
        """All drawings by name."""
        return self._dot_graphs

    def _drawn(self, module: GraphModule, name: str) -> _dot.Dot:
        graph = _dot.Dot(name, rankdir="TB")
        shown = [node for node in module.graph.nodes if self._attributes or node.op != "get_attr"]
        for node in shown:
            graph.add_node(_dot.Node(node.name, label=self._label(module, node), **self._style(self._fill(node))))
            if node.op == "call_module" and self._weights:
                inner = _get_attr(module, node.target)
                if not isinstance(inner, GraphModule):
                    self._add_weights(graph, node, inner)
        for node in shown:
            for user in node.users:
                graph.add_edge(_dot.Edge(node.name, user.name))
        return graph

    def _add_weights(self, graph: _dot.Dot, node: Node, module: nn.Module) -> None:
        for name, t in chain(module.named_parameters(), module.named_buffers()):
            kind = "parameter" if isinstance(t, nn.Parameter) else "buffer"
            full = f"{node.name}.{name}"
            label = f"{{{full}|op_code=get_{kind}\\l{t.dtype}{list(t.shape)}\\n}}"
            graph.add_node(_dot.Node(full, label=label, **self._style("Salmon")))
            graph.add_edge(_dot.Edge(full, node.name))

    def _style(self, fill: str) -> dict[str, str]:
        return {"shape": self.dot_graph_shape, "fillcolor": fill, "style": '"filled,rounded"', "fontcolor": "#000000"}

    @staticmethod
    def _fill(node: Node) -> str:
        if node.op in _FILL:
            return _FILL[node.op]
        return _FILLS[int(md5(target_name(node.target).encode(), usedforsecurity=False).hexdigest()[:8], 16) % len(_FILLS)]

    def _label(self, module: GraphModule, node: Node) -> str:
        label = f"{{name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            inner = _get_attr(module, node.target)
            constants = r"\n".join(f"{c}: {getattr(inner, c)}" for c in getattr(inner, "__constants__", ()) if hasattr(inner, c))
            label += rf"\n{_escaped(strata.typename(inner))}\n|{constants}\n"
        else:
            target = node.target if isinstance(node.target, str) else qualified_name(node.target)
            label += rf"|target={_escaped(target)}\n"
            args, kwargs = self._given(node)
            label += self._arguments("args", "(", ")", map(format_arg, args))
            label += self._arguments("kwargs", "{", "}", (f"{k}: {format_arg(v)}" for k, v in kwargs.items()))
            label += rf"|num_users={len(node.users)}\n"
        label += self._tensors(node.meta.get("tensor_meta"))
        if self._lines and node.stack_trace is not None:
            label += rf"|{_escaped(stack_summary(node.stack_trace))}\n"
        return label + "}"

    def _given(self, node: Node) -> tuple[tuple, dict[str, Any]]:
        """The node's arguments, all by name where that is wanted and the function says them."""
        if self._normalize and node.op == "call_function":
            with suppress(RuntimeError, ValueError, TypeError):  # of several overloads, builtins, wrong calls
                found = normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True)
                if found is not None:
                    return found
        return node.args, node.kwargs

    def _arguments(self, name: str, opening: str, closing: str, texts: Any) -> str:
        shown = [text for text in texts if not (self._skip_nodes and "%" in text)]
        if not shown:
            return ""
        if len(shown) == 1:
            return _escaped(f"|{name}={opening}{shown[0]},{closing}")
        return f"|{name}={_escaped(opening)}\\l" + _escaped(r",\n".join(shown)) + rf",\n{_escaped(closing)}\l"

    def _tensors(self, meta: Any) -> str:
        """What is known of a value, or of all in a nest."""
        if isinstance(meta, TensorMetadata):
            facts = {"dtype": meta.dtype, "shape": tuple(meta.shape), "requires_grad": meta.requires_grad, "stride": meta.stride}
            return "".join(rf"|{name}={value}\n" for name, value in facts.items())
        if isinstance(meta, dict):
            meta = list(meta.values())
        return "".join(map(self._tensors, meta)) if isinstance(meta, (list, tuple)) else ""
