"""Modules whose forward is a graph: printed as Python code, which runs."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import sys
import traceback
import weakref
from pathlib import Path

import strata
from strata import nn
from strata.nn.modules.module import _addindent

from ._codegen import PythonCode, _PyTreeCodeGen
from .graph import Graph
from .node import Node, map_aggregate

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["GraphModule", "reduce_graph_module"]

_KEPT = ("is_wrapped", "stack_trace")  # of nodes' meta, in files
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in a module's meta: attributes that copies get, too
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


_numbers = itertools.count()


def _forward_of(text: str, variables: dict[str, Any], origin: dict[str, Any]) -> Callable:
    """The function `forward` of a text. It carries its own globals, and tracebacks show its lines as long as it lives."""
    name = f"<eval_with_key>.{next(_numbers)}"
    if origin:
        name += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    variables = dict(variables)
    exec(compile(text, name, "exec", dont_inherit=True), variables)
    function = variables.pop("forward")
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    weakref.finalize(function, linecache.cache.pop, name, None)
    return function


class _CodeOnlyModule(nn.Module):
    """What a module held, without its graph: when it was pickled, or in copies that programs make of it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class _Ref:
    """A node in what is pickled, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Operator:
    """An operator in what is pickled, by its name; without an overload, all of them."""

    def __init__(self, op: Any) -> None:
        self.name = op.name() if isinstance(op, strata.ops.OpOverload) else str(op)
        self.packet = isinstance(op, strata.ops.OpOverloadPacket)

    def found(self) -> Any:
        if not self.packet:
            return strata.ops.get(self.name)
        namespace, _, name = self.name.partition(".")
        return getattr(getattr(strata.ops, namespace), name)


def _encoded(value: Any) -> Any:
    return _Operator(value) if isinstance(value, (strata.ops.OpOverload, strata.ops.OpOverloadPacket)) else value


def _written(graph: Graph) -> list[tuple]:
    """The nodes of a graph, to be pickled: their kinds, names, targets, arguments, types, and what meta their code needs."""
    places = {node: i for i, node in enumerate(graph.nodes)}

    def encoded(value: Any) -> Any:
        return map_aggregate(value, lambda v: _Ref(places[v]) if isinstance(v, Node) else _encoded(v))

    return [
        (n.op, n.name, _encoded(n.target), encoded(n.args), encoded(n.kwargs), n.type, {k: n.meta[k] for k in _KEPT if k in n.meta})
        for n in graph.nodes
    ]


def _read(written: list[tuple]) -> Graph:
    graph, nodes = Graph(), []

    def decoded(value: Any) -> Any:
        return nodes[value.number] if isinstance(value, _Ref) else value.found() if isinstance(value, _Operator) else value

    for op, name, target, args, kwargs, annotation, meta in written:
        node = graph.create_node(op, decoded(target), map_aggregate(args, decoded), map_aggregate(kwargs, decoded), name, annotation)
        node.meta.update(meta)
        nodes.append(node)
    return graph


def reduce_graph_module(body: dict[str, Any], written: list[tuple], codegen: Any) -> GraphModule:
    """The module that was pickled."""
    graph = _read(written)
    graph._codegen, graph._tracer_cls = codegen, body.get("_tracer_cls")
    made = GraphModule(_CodeOnlyModule(body), graph)
    made.meta.update(body.get("meta", {}))
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made


def _copy_attr(source: nn.Module, to: nn.Module, path: str) -> None:
    """Gives `to` what `source` has under a path, with empty modules on the way there."""
    *prefix, field = path.split(".")
    for name in prefix:
        inner, target = getattr(source, name), getattr(to, name, None)
        if inner is target:
            return
        if target is None:
            target = nn.Module()
            setattr(to, name, target)
        source, to = inner, target
    _put(to, field, getattr(source, field))


def _put(module: nn.Module, name: str, value: Any) -> None:
    if isinstance(value, strata.Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _assign_attr(value: Any, to: nn.Module, path: str) -> None:
    *prefix, field = path.split(".")
    for name in prefix:
        inner = getattr(to, name, None)
        if inner is None:
            inner = nn.Module()
            setattr(to, name, inner)
        to = inner
    _put(to, field, value)


def _get_attr(model: nn.Module, attr_name: str) -> Any:
    for name in attr_name.split("."):
        model = getattr(model, name)
    return model


class GraphModule(nn.Module):
    """A module made of a graph: `graph`, its Python text `code`, and `forward`, which is that text compiled.

    root: a module, or a dict by path, with what the graph's nodes name; these parts are shared, not copied. Each
    object has a class of its own, for its own forward. After a change of the graph, `recompile()`.

    RuntimeError where root is another thing or a dict that lacks a path.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        for base in cls.__mro__:  # not from a class that another object has alone
            if base.__qualname__.rpartition(".")[2] != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        named = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                for members in (root.named_children(), root.named_buffers(), root.named_parameters()):
                    for name, _ in members:
                        _copy_attr(root, self, name)
            for node in named:
                _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in named:
                if node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")
            for path in sorted((node.target for node in named), key=lambda path: path.count(".")):
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for kind in _HOOKS:
            setattr(self, kind, [])
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """Its graph. Assigning one compiles it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Prints and compiles the graph as it is now, and those of graph modules in it."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.in_spec, codegen.out_spec
        printed = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = printed.src, printed._lineno_map, printed._prologue_start
        cls = type(self)
        cls.forward = _forward_of(printed.src, printed.globals, self._graph._co_fields)
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return printed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" in last.filename:
                print(_where(last), file=sys.stderr)
                raise error.with_traceback(None) from error.__cause__
            raise

    # ---- submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Adds a module under a path, with empty ones on the way there. False where something else is in the way."""
        *prefix, field = target.split(".")
        place: nn.Module = self
        for name in prefix:
            inner = getattr(place, name, None)
            if inner is None:
                inner = nn.Module()
                setattr(place, name, inner)
            if not isinstance(inner, nn.Module):
                return False
            place = inner
        place.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module of that path away. False where there is none."""
        *prefix, field = target.split(".")
        place: Any = self
        for name in prefix:
            place = getattr(place, name, None)
            if not isinstance(place, nn.Module):
                return False
        if not isinstance(getattr(place, field, None), nn.Module):
            return False
        delattr(place, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes modules away that no node calls or reads, nor anything in them."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    inner = self.get_submodule(node.target)
                    used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies and files

    def __reduce__(self) -> tuple:
        codegen = copy.copy(self._graph._codegen)
        codegen._body_transformer = None
        return reduce_graph_module, ({k: v for k, v in self.__dict__.items() if k != "_graph"}, _written(self._graph), codegen)

    def __deepcopy__(self, memo: dict) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        root = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        GraphModule.__init__(made, root, root.__dict__["_graph"])
        kept = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *_HOOKS, "meta")
        made.__dict__.update({name: root.__dict__[name] for name in kept if name in root.__dict__})
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in self._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = self.meta
        return made

    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Writes a Python package there: the class of that name with this forward, and its parameters beside it.

        Layers that their repr builds again are written as text, other submodules are pickled beside it, with a warning.
        """
        from ._folder import write

        write(self, Path(folder), module_name)

    # ---- text

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
    ) -> str:
        """Prints the module as a class, with dtypes and sizes where they are known and the user's lines. Gives the text, too."""
        text = _readable(self, self._get_name(), include_stride=include_stride, include_device=include_device, colored=colored)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    # ---- hooks, called when nodes change

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hooks(verb: str, kind: str) -> None:
    def register(self: GraphModule, f: Callable[[Node], Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{verb} hook must be a callable.")
        getattr(self, kind).append(f)

    def unregister(self: GraphModule, f: Callable[[Node], Any]) -> None:
        getattr(self, kind).remove(f)

    setattr(GraphModule, f"_register_{verb}_hook", register)
    setattr(GraphModule, f"_unregister_{verb}_hook", unregister)


for _verb, _kind in zip(("replace_node", "create_node", "erase_node", "deepcopy"), _HOOKS):
    _add_hooks(_verb, _kind)


def _readable(module: GraphModule, name: str, **options: bool) -> str:
    text = module.graph.python_code(root_module="self", verbose=True, **options).src.lstrip("\n")
    text = _addindent(f"class {name}(strata.nn.Module):\n{text}", 4)
    inner = [_readable(child, key, **options) for key, child in module.named_children() if isinstance(child, GraphModule)]
    return text + _addindent("\n".join(["", *inner]), 4)


def _where(last: traceback.FrameSummary) -> str:
    """An error in generated code, with its line marked."""
    lines = linecache.getlines(last.filename)
    return "\n".join([
        traceback.format_exc(),
        f"Call using an FX-traced Module, line {last.lineno} of the traced Module's generated forward function:",
        "".join(lines[last.lineno - 2 : last.lineno]),
        "~" * len(last.line) + "~~~ <--- HERE",
        "\n".join(lines[last.lineno : last.lineno + 2]),
    ])  # fmt: skip
