"""Running a graph node by node: with values, or with stand-ins for another graph."""

from __future__ import annotations

from inspect import Signature

from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate, map_arg
from .proxy import Proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from strata import nn

    from .node import Node

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes of a module's graph in order. Override `run_node` or a kind of node to see or change what they do.

    garbage_collect_values: a value is let go of behind its last use. graph: another one than module.graph.
    """

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for user in reversed(self.graph.nodes):
                for node in user._input_nodes:
                    if node not in seen:
                        seen.add(node)
                        self.user_to_last_uses.setdefault(user, []).append(node)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """What the graph gives for these arguments.

        initial_env: values of nodes, which do not run then. enable_io_processing: arguments and result are those of the
        module; else, where nests were traced, the leaves that the graph takes and gives.

        An error names the node that it came from.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._explain(error, node)
                raise
            for dead in self.user_to_last_uses.get(node, ()):
                del self.env[dead]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    @staticmethod
    def _explain(error: Exception, node: Node) -> None:
        text = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
        error.args = (f"{error.args[0]}\n\n{text}" if error.args else text, *error.args[1:])
        if isinstance(error, KeyError):
            raise RuntimeError(*error.args) from error

    def boxed_run(self, args_list: list[Any]) -> Any:
        """What the graph gives for the arguments in a list, which is emptied, so that they can be let go of early."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(inputs) != len(args_list):
            kind = "extra" if len(args_list) > len(inputs) else "missing"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received {len(args_list)} ({kind} arguments)"
            )
        env = dict(zip(inputs, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        with fx_traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # ---- the kinds of nodes

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default; all that are left for *args."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as stop:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from stop

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute of the module by its path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """target(*args, **kwargs)."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The method of args[0]."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The submodule of that path."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    # ---- helpers

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a path. RuntimeError where there is nothing."""
        found: Any = self.module
        atoms = target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(found, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict[str, Any]]:
        """The node's arguments with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """A nest of arguments of node n with values in place of nodes."""

        def value(read: Node) -> Any:
            if read not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {read}! Run Graph.lint() to diagnose such issues")
            return self.env[read]

        return map_arg(args, value)


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph, root: nn.Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self._constants = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph on stand-ins, so that what the overridden methods do becomes the nodes of a new one."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """The argument of the new graph."""
        default = args[0] if args else Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """The attribute's node in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call's node in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call's node in the new graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def transform(self) -> GraphModule:
        """The module with the new graph. It shares its parts with the old one."""
        with fx_traceback.preserve_node_meta():
            result = self.run(enable_io_processing=False)
        if result is not None:
            made = self.new_graph.output(map_aggregate(result, lambda v: v.node if isinstance(v, Proxy) else v))
            made.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
