"""Stand-ins for the values of a function: what is done to them becomes nodes of a graph."""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import enum
import operator
import sys

import strata
from strata._frames import line_text, user_frame

from . import traceback as fx_traceback
from ._codegen import magic_methods, reflectable_magic_methods
from .node import Node, map_aggregate, map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, NoReturn

    from .graph import Graph

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
    "base_types",
]

# Constants that stand in a graph as they are.
base_types = (str, int, float, bool, complex, strata.dtype, strata.Tensor, strata.device, strata.memory_format, strata.layout)


class TraceError(ValueError):
    """What is traced asks for something that a stand-in does not have: a value, a length."""


class _LengthError(TraceError, RuntimeError):
    """PyTorch raises RuntimeError where len() is asked for."""


def _refuse(kind: type, message: str, way_out: str) -> NoReturn:
    raise kind(f"{message}\n{line_text(user_frame())}\n{way_out}")


def _instruction(frame: FrameType, ahead: int = 0) -> dis.Instruction:
    """What a frame is at, or what comes behind it."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next(i for i, inst in enumerate(instructions) if inst.offset >= frame.f_lasti)
    return instructions[min(at + ahead, len(instructions) - 1)]


class Scope:
    """The module whose forward is traced: its path and type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """In it, the scope is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """Makes nodes of what is done to proxies.

    record_stack_traces: nodes know the user's lines. trace_asserts: `assert proxy` becomes a node. proxy_buffer_attributes:
    buffers that the function reads are proxies, too. traced_func_name: the method of a module that is traced.
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def _start(self) -> None:
        self.scope = Scope("", None)
        self.module_stack: collections.OrderedDict[str, tuple[str, type]] = collections.OrderedDict()
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}

    def create_node(
        self, kind: str, target: Any, args: tuple, kwargs: dict[str, Any], name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A node of the graph, which takes over the meta of the one that runs. Override it to see or change all nodes."""
        if kind == "call_function" and self.check_mutable_operations and getattr(target, "__name__", "").endswith("_"):
            raise RuntimeError(f"Tried to trace mutable operation {target.__name__}. FX only supports functional code")
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            node.meta.update(fx_traceback.kept_meta())
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = self._user_lines()
        return node

    def _user_lines(self) -> str | None:
        import traceback

        here = strata.__file__.rpartition("/")[0]
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith(here)]
        first = next((i for i, f in enumerate(frames) if f.name == "forward"), None)
        return None if first is None else "".join(traceback.StackSummary.from_list(frames[first:]).format()).strip()

    def proxy(self, node: Node) -> Proxy:
        """The stand-in for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node of these arguments, which may hold proxies, and the stand-in for it."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        return (proxy_factory_fn or self.proxy)(self.create_node(kind, target, args_, kwargs_, name, type_expr))

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes hold it: proxies become their nodes, nests are walked through, constants stay.

        NotImplementedError for what a graph cannot hold. Override it for classes of your own, or give them a method
        __fx_create_arg__(tracer).
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            inner = [self.create_arg(v) for v in a]
            return type(a)(*inner) if hasattr(a, "_fields") else type(a)(inner)
        if isinstance(a, list):
            return [self.create_arg(v) for v in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum, strata.ops.OpOverload, Node)):
            return a
        if dataclasses.is_dataclass(a):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        if isinstance(key, str):
            return key
        key = self.create_arg(key)
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """What `if proxy` is. Raises TraceError; override it to choose a branch."""
        _refuse(
            TraceError,
            "symbolically traced variables cannot be used as inputs to control flow",
            "Choose with strata.where, make the argument a constant with concrete_args, put the code into a function marked with "
            "strata.fx.wrap or a leaf module, or capture one branch with strata.graph(f, example).",
        )

    def iter(self, obj: Proxy) -> Iterator:
        """What `for v in proxy` walks through. Raises TraceError; override it where the length is known."""
        _refuse(
            TraceError,
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function "
            "argument.",
            "Unpack into names (a, b = x), index with constants, or put the loop into a function marked with strata.fx.wrap.",
        )

    def keys(self, obj: Proxy) -> Any:
        """What obj.keys() is, as **proxy asks for it."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Puts nodes into a graph that is there: what a Proxy of a node uses by itself."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self._start()


def assert_fn(x: Any) -> None:
    """What `assert proxy` becomes where asserts are traced."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """The stand-in for a node's value. Operators, methods and functions of strata on it become nodes.

    What needs a value (`if`, a loop, len, int) raises TraceError with the user's line.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # Not traced before it is used: a method that is called is a call_method.
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict) -> Proxy:
        return Proxy(copy.deepcopy(self.node, memo), self.tracer)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        instruction = _instruction(sys._getframe(1))
        if instruction.opname == "UNPACK_SEQUENCE":  # a, b = proxy: as many as there are names
            return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame = sys._getframe(1)
            at = _instruction(frame).opname in ("COMPARE_OP", "TO_BOOL")  # of 3.13, before the jump
            jumps = _instruction(frame, at).opname in ("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_IF_TRUE")
            if jumps and _instruction(frame, at + 1).opname == "LOAD_ASSERTION_ERROR":
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        _refuse(
            _LengthError,
            "'len' is not supported in symbolic tracing by default.",
            "If you want this call to be recorded, please call strata.fx.wrap('len') at module scope",
        )

    @classmethod
    def __torch_function__(cls, orig_method: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Proxy:
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}
        map_aggregate((args, kwargs), lambda v: tracers.setdefault(v.tracer) if isinstance(v, Proxy) else None)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}")
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if strata.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name))


class Attribute(Proxy):
    """An attribute of a proxy: a call of it is a call_method, any other use a getattr."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The stand-in for a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: strata.nn.Parameter) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def size(self) -> Any:
        return self.param.size()

    def dim(self) -> int:
        return self.param.dim()

    def numel(self) -> int:
        return self.param.numel()

    nelement = numel


def _operator(name: str, target: Callable, reflected: bool) -> Callable:
    def forward(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    def backward(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    made = backward if reflected else forward
    made.__name__ = made.__qualname__ = name
    return made


def _number(name: str) -> Callable:
    def asked(self: Proxy) -> NoReturn:
        _refuse(
            TraceError,
            f"{name}() of a symbolically traced variable: its value is not known",
            f"Call strata.fx.wrap('{name}') at module scope, which records the call, or make the argument a constant with concrete_args.",
        )

    return asked


for _name in magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name, getattr(operator, _name), False))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        _reflected = f"__r{_name.strip('_')}__"
        setattr(Proxy, _reflected, _operator(_reflected, getattr(operator, _name), True))
for _name in ("int", "float", "complex"):
    setattr(Proxy, f"__{_name}__", _number(_name))
Proxy.__index__ = _number("int")
Proxy.__hash__ = object.__hash__
