"""Nodes of a graph: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import operator

import strata

from ._names import qualified_name as _get_qualified_name  # noqa: F401  programs import it from here
from ._names import target_name
from ._names import type_name as _type_repr
from .immutable_collections import immutable_dict, immutable_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

# In annotations: what a node calls (a function, or the name of a method, module or attribute), and an argument.
Target = object
Argument = object

_KINDS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

# Functions that are called for what they do: dead code elimination keeps them.
_side_effectful_functions: set = {strata._assert, operator.setitem, strata._C._set_grad_enabled}


def has_side_effect(fn: Callable) -> Callable:
    """Calls of the function stay where nothing uses their result. Gives the function, so it is a decorator, too."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """fn of each leaf in nested tuples, named tuples, lists, dicts and slices; lists and dicts come back immutable."""
    if isinstance(a, tuple):
        values = [map_aggregate(v, fn) for v in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict([(k, map_aggregate(v, fn)) for k, v in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """fn of each node in a nest of arguments; what is no node stays."""
    if not callable(fn):
        raise AssertionError("strata.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda v: fn(v) if isinstance(v, Node) else v)


def format_arg(arg: Any) -> str:
    """An argument as a line of a graph shows it: nodes with %."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, list):
        return f"[{', '.join(map(format_arg, arg))}]"
    if isinstance(arg, tuple):
        return f"({', '.join(map(format_arg, arg))}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k}: {format_arg(v)}' for k, v in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One value of a graph.

    op: what kind of node it is. `placeholder`: an argument of the function, target its name, args its default if any.
    `get_attr`: an attribute of the module, target its path. `call_function`: target(*args, **kwargs). `call_method`: the
    method of args[0] that target names. `call_module`: the submodule of that path. `output`: what is returned, args[0].

    name: of the result, unique in the graph. users: the nodes that read it, an ordered set as a dict. type: an annotation
    or None. meta: what passes note, which copies keep.
    """

    graph: Graph

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple, kwargs: dict[str, Any], return_type: Any = None
    ) -> None:
        if op not in _KINDS:
            raise AssertionError(f"op '{op}' is not in {_KINDS}")
        fits, expected = (callable(target), "Callable") if op == "call_function" else (isinstance(target, str), "str")
        if not fits:
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {strata.typename(target)} but a {expected} is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set_arguments(map_aggregate(args, _same), map_aggregate(kwargs, _same))

    # ---- its place in the graph

    @property
    def next(self) -> Node:
        """The node behind it; behind the last one, the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it; before the first one, the graph's root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Puts node x of the same graph before this one, from where it was."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Puts node x of the same graph behind this one, from where it was."""
        if x is not self and x is not self._next:
            self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._order = None

    def _place(self) -> int:
        return self.graph._places()[self]

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # ---- arguments

    @property
    def args(self) -> tuple:
        """Positional arguments. Assign a new tuple to change them: uses are counted then."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._set_arguments(map_aggregate(tuple(args), _same), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments. Assign a new dict to change them: uses are counted then."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set_arguments(self._args, map_aggregate(dict(kwargs), _same))

    def _set_arguments(self, args: tuple, kwargs: dict[str, Any]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}
        self._args, self._kwargs = args, kwargs
        map_arg((args, kwargs), self._note_input)

    def _note_input(self, node: Node) -> Node:
        self._input_nodes[node] = None
        node.users[self] = None
        return node

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that it reads, each once, in the order of its arguments."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Changes the positional argument of that number."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Inserts a positional argument before the one of that number."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Changes or adds the keyword argument of that name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Reads new_input wherever it read old_input."""
        for hook in self.graph._hooks("_replace_hooks"):
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input(old_input, new_input)

    def _replace_input(self, old: Node, new: Any) -> None:
        def swapped(node: Node) -> Any:
            return new if node is old else node

        self._set_arguments(map_arg(self._args, swapped), map_arg(self._kwargs, swapped))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """All users read replace_with instead, or those of which delete_user_cb is true. Gives the users that changed.

        propagate_meta: replace_with, which must have no meta yet, takes over this node's.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- what it is

    @property
    def stack_trace(self) -> str | None:
        """The user's lines that made it, as a traceback prints them, innermost last."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay where nothing reads its result: it writes, checks or draws random numbers."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions or _acts(self.target, impure_random)
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        return False

    def normalized_arguments(
        self,
        root: strata.nn.Module,
        arg_types: tuple | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """(args, kwargs) of a call with defaults filled in, by the names that the function or module gives them; None where it does not say.

        See operator_schemas.normalize_function.
        """
        from . import operator_schemas

        if self.op == "call_function":
            return operator_schemas.normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return operator_schemas.normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    _pretty_print_target = staticmethod(target_name)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as one line.

        placeholder_names: where it is not empty, placeholders go there and have no line. maybe_return_typename: a list of one text,
        which becomes the annotation of what the graph returns.
        """
        annotation = "" if self.type is None else f"{_type_repr(self.type)} "
        head = f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}[target={target_name(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(self.target + (f": {_type_repr(self.type)}" if self.type else ""))
                return None
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if include_tensor_metadata and isinstance(value, strata.Tensor):
            from ._values import annotation as described
            from ._values import device_of

            head = head.replace(f" : {annotation}[", f' : Tensor "{described(value, True, device_of(self.meta, value))}"[', 1)
        return f"{head}(args = {format_arg(self.args)}, kwargs = {format_arg(self.kwargs)})"

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)


def _same(value: Any) -> Any:
    return value


def _acts(target: Any, random: bool) -> bool:
    """Whether an operator of the table writes an argument or draws (where that counts); whether a function of strata draws."""
    if isinstance(target, strata.ops.OpOverloadPacket):
        found = target._candidates()
        target = next((op for op in found if op.name() == target._qualified_op_name), None)
    if isinstance(target, strata.ops.OpOverload):
        if target._schema.is_mutable or target in _side_effectful_functions:
            return True
        info = strata._C._op_info(target)
        return random and info is not None and "draws" in info[0]["acts"]
    return any(target is getattr(strata, name) for name in _DRAW)


_DRAW = "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial".split()
