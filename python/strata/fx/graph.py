"""A graph: a list of nodes, of which each reads nodes before it."""

from __future__ import annotations

import contextlib
import copy
import re
import warnings
from inspect import Signature

import strata

from ._codegen import CodeGen, PythonCode, _PyTreeCodeGen, inplace_methods, magic_methods, reflectable_magic_methods
from ._namespace import Namespace
from .immutable_collections import immutable_dict
from .node import Node, map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .graph_module import GraphModule

__all__ = [
    "CodeGen",
    "Graph",
    "PythonCode",
    "_PyTreeCodeGen",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]

_Namespace = Namespace


class _NodeList:
    """The nodes in order. Nodes may be added and erased while it is walked through."""

    def __init__(self, graph: Graph, step: str = "_next") -> None:
        self._graph, self._step = graph, step

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self._graph._root, self._step)
        while node is not self._graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self._step)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_NodeList(self._graph, "_prev" if self._step == "_next" else "_next"))


class Graph:
    """Nodes in the order in which they run, and where the next one goes.

    owning_module: whose attributes and submodules its nodes name, or None. tracer_cls, tracer_extras: what made it, so that
    a pickled module can be traced again in the same way.
    """

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: type | None = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._order: dict[Node, int] | None = None
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def nodes(self) -> _NodeList:
        """The nodes in order: a view that can be walked both ways."""
        return _NodeList(self)

    def _places(self) -> dict[Node, int]:
        if self._order is None:
            self._order = {node: i for i, node in enumerate(self.nodes)}
        return self._order

    def _hooks(self, kind: str) -> list[Callable]:
        return getattr(self.owning_module, kind, None) or []

    def output_node(self) -> Node:
        """The last node, which is the output. AssertionError where it is not."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind that call `target`; but for functions, of any target where it is None."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the place of insertion, which is the end at first. Without a name it is called like its target."""
        args = args or ()
        kwargs = kwargs or immutable_dict()
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args, kwargs, type_expr)
        for hook in self._hooks("_create_node_hooks"):
            hook(node)
        self._graph_namespace.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            name = target.__name__
        else:
            if not isinstance(target, str):
                raise AssertionError(f"Expected target to be str, got {type(target)}")
            name = target[2:-2] if target.startswith("__") and target.endswith("__") else target
        return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = Signature.empty) -> Node:
        """An argument of the function. Arguments come before all other nodes."""
        args = () if default_value is Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module by its path. Warns where the owning module has no such parameter, buffer or module."""
        if self.owning_module is not None and not _refers(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary Parameter, "
                "or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None
    ) -> Node:
        """A call of the submodule of that path. AttributeError where the owning module has none."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict[str, Any] | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the function returns: a nest of nodes and constants."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node, as a rule of another graph; arg_transform gives this graph's nodes of those that it reads."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies all nodes of g but its output, and notes in val_map which became which; those that it holds already stay out.

        Gives what g returns, in terms of the copies (with g's output node, where that is asked for), or None.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = copy.deepcopy(self._codegen)
        returned = made.graph_copy(self, memo if memo else {}, return_output_node=True)
        if returned is not None:
            result, old = returned
            made.output(result, type_expr=old.type).meta = copy.copy(old.meta)
        return made

    # ---- where nodes go, and away

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """In a `with`, new nodes go before n, or to the beginning."""
        return _Insertion(self, self._root.append if n is None else self._own(n, "before").prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """In a `with`, each new node goes right behind n, or to the end."""
        return _Insertion(self, self._root.prepend if n is None else self._own(n, "after").append)

    def _own(self, n: Node, where: str) -> Node:
        if n.graph is not self:
            raise AssertionError(f"Node to insert {where} is not in graph.")
        return n

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out. RuntimeError where others read it or it is of another graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node")
            return
        for hook in self._hooks("_erase_node_hooks"):
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments(map_arg(to_erase._args, lambda n: None), map_arg(to_erase._kwargs, lambda n: None))

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erases nodes whose results nothing reads and that do nothing else. Gives whether there were any."""
        self.lint()
        stays = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                changed = True
        return changed

    # ---- code and text

    def python_code(self, root_module: str, *, record_func: bool = False, expanded_def: bool = False, **options: Any) -> PythonCode:
        """The graph as a function, in which the module is called root_module ("self").

        verbose: with what is known of values' dtypes and sizes, and the user's lines as comments; include_stride,
        include_device, colored: more of it.
        """
        if record_func or expanded_def:
            raise NotImplementedError("python_code: record_func and expanded_def are not provided; leave them out")
        namespace = Namespace()
        for node in self.nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)
        finally:
            for node in self.nodes:
                node._repr_fn = None

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        rows = [[str(v) for v in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        print(_table(["opcode", "name", "target", "args", "kwargs"], rows))

    def lint(self) -> None:
        """Checks that nodes read nodes of this graph before them, names differ, and the module has what they name.

        RuntimeError, or ValueError for a target of the wrong type.
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output"):
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                self._check_argument(arg, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                self._check_target(node)

    def _check_argument(self, arg: Node, node: Node, seen: set[Node]) -> None:
        if arg.graph is not self:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are copying nodes "
                f"from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if arg not in seen:
            raise RuntimeError(
                f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are "
                f"topologically ordered\n{self}"
            )

    def _check_target(self, node: Node) -> None:
        fits, expected = (callable(node.target), "Callable") if node.op == "call_function" else (isinstance(node.target, str), "str")
        if not fits:
            raise ValueError(f"Node {node} target {node.target} has type {strata.typename(node.target)} but a {expected} is expected")
        if node.op not in ("get_attr", "call_module"):
            return
        place: Any = self.owning_module
        atoms = node.target.split(".")
        for i, atom in enumerate(atoms):
            found = getattr(place, atom, None)
            where = ".".join(atoms[:i])
            if found is None:
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {atom} of {where}")
            place = found
        if node.op == "call_module" and not isinstance(place, strata.nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} {atom} of {where} does not reference an nn.Module")

    # ---- how calls meet it

    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs of a call's arguments: their leaves, where nests were traced."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """A call's result of what the graph returns."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Changes how the graph is printed as a function."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable) -> contextlib.AbstractContextManager[None]:
        """make_transformer(the current transformer or None) gives what may change the body's lines from now on.

        Used in a `with`, the change ends there.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        stack = contextlib.ExitStack()
        stack.callback(lambda: setattr(self._codegen, "_body_transformer", before))
        return stack


class _Insertion:
    """A place of insertion, from when it is asked for until the `with` ends."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self.graph._insert = self.before


def _refers(module: strata.nn.Module, path: str) -> bool:
    """Whether get_attr finds a module, parameter or buffer there."""
    place, _, name = path.rpartition(".")
    try:
        owner = module.get_submodule(place)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {place}!")
        return False
    found = getattr(owner, name, None)
    return isinstance(found, (strata.nn.Module, strata.nn.Parameter)) or name in owner._buffers


def _table(headers: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as their longest text, headers with two spaces more, with a line under the headers."""
    widths = [max(len(header) + 2, *(len(row[i]) for row in rows)) if rows else len(header) + 2 for i, header in enumerate(headers)]

    def line(cells: list[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()

    return "\n".join([line(headers), "  ".join("-" * width for width in widths), *map(line, rows)])
