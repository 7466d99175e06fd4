"""Tracing: a function runs once on stand-ins for its arguments, and what it does to them becomes a graph."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import warnings
from _thread import _local

import strata
from strata import nn
from strata._missing import missing_class
from strata.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

from ._compatibility import compatibility  # noqa: F401 - tracers of programs take it from here
from ._patch import Patcher, recorded_method, wrapped_functions
from .graph import Graph, _PyTreeCodeGen
from .graph_module import GraphModule
from .node import Node
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase, base_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

ScriptObject = missing_class(__name__, "ScriptObject", "this version has no compiler of source text")
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def is_fx_tracing() -> bool:
    """Whether a function is being traced on this thread."""
    return bool(_here.tracers)


class ProxyableClassMeta(type):
    """A metaclass: objects that are made of proxies while a function is traced are nodes of the graph."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        from ._patch import find_proxy

        proxy = find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


class PHBase:
    """In concrete_args: this leaf is an argument of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """The same; its attributes become those of the node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _annotation(function: Callable, name: str) -> Any:
    """The annotation of an argument. The layers of strata.nn say it as text, of which tensors alone are shown."""
    found = getattr(function, "__annotations__", {}).get(name)
    if isinstance(found, str) and (function.__module__ or "").startswith("strata."):
        return strata.Tensor if found == "Tensor" else None
    return found


def _with_positional(function: types.FunctionType, count: int) -> types.FunctionType:
    """The function with its first `count` variables as positional arguments: *args and **kwargs are given as they are."""
    code = function.__code__
    code = code.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~_VARIADIC)
    return types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


class _Here(_local):
    """The tracers at work on this thread, outermost first. Modules of other threads are as ever."""

    def __init__(self) -> None:
        self.tracers: list[Tracer] = []


_here = _Here()


def _traced_getattr(original: Callable) -> Callable:
    def module_getattr(module: nn.Module, name: str) -> Any:
        value = original(module, name)
        if not _here.tracers:
            return value
        tracer = _here.tracers[-1]
        return tracer.getattr(name, value, tracer._cache)

    return module_getattr


def _traced_call(original: Callable) -> Callable:
    @functools.wraps(original)
    def module_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        def forward(*args: Any, **kwargs: Any) -> Any:
            return original(module, *args, **kwargs)

        if not _here.tracers:
            return forward(*args, **kwargs)
        tracer = _here.tracers[-1]
        tracer._patcher.functions_in(getattr(module.forward, "__globals__", {}), tracer._autowrap_function_ids)
        return tracer.call_module(module, forward, args, kwargs)

    return module_call


class Tracer(TracerBase):
    """Traces a module or function to a Graph. Subclasses decide what stays a call (`is_leaf_module`) and what nodes are made.

    autowrap_modules, autowrap_functions: Python functions that are recorded as calls, where the function names them globally.
    param_shapes_constant: shapes of parameters are numbers, not nodes.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_modules = list(autowrap_modules)
        members = [item for module in autowrap_modules for item in vars(module).items()]
        self._autowrap_function_ids = {id(v) for name, v in members if not name.startswith("_") and callable(v)}
        self._autowrap_function_ids |= {id(f) for f in autowrap_functions}
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}
        self._start()

    # ---- what subclasses change

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of the module stays one node: so for the layers of strata.nn, but for Sequential."""
        return type(m).__module__.startswith("strata.nn") and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The module's path in the root. NameError where it is not part of it."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: nn.Module, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a call of a submodule is: a node for a leaf, else what forward(*args, **kwargs) gives."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.num_calls[path] = calls + 1
            self.module_stack[key] = (path, scope.module_type)
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """What a module's attribute is: a stand-in for a parameter, and for a buffer where these are wanted."""
        if isinstance(attr_val, nn.Parameter):
            members: Iterable[tuple[str, Any]] = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, strata.Tensor):
            members = self.root.named_buffers()
        else:
            return attr_val
        name = next((name for name, member in members if member is attr_val), None)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            known = isinstance(attr_val, nn.Parameter) and self.param_shapes_constant
            factory = {"proxy_factory_fn": lambda node: ParameterProxy(self, node, name, attr_val)} if known else {}
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **factory)
        return parameter_proxy_cache[name]

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes hold it. The root's parameters, buffers and modules become get_attr; other tensors become

        constants of the root. NameError for a parameter of another module.
        """
        kinds = ((nn.Parameter, "named_parameters"), (strata.Tensor, "named_buffers"), (nn.Module, "named_modules"))
        for kind, members in kinds:
            if isinstance(a, kind):
                name = next((name for name, member in getattr(self.root, members)() if member is a), None)
                if name is not None:
                    return self.create_node("get_attr", name, (), {})
                if kind is nn.Parameter:
                    raise NameError("parameter is not a member of this module")
                break
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(v) for v in a), {})
        if isinstance(a, (strata.Tensor, TreeSpec)):
            return self._constant(a)
        if isinstance(type(a), ProxyableClassMeta):
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, a: Any) -> Node:
        key = id(a)
        if key not in self._constants:
            name = self.get_fresh_qualname("_tensor_constant" if isinstance(a, strata.Tensor) else "_tree_spec_constant")
            setattr(self.root, name, a)
            self._constants[key] = (name, a)
        return self.create_node("get_attr", self._constants[key][0], (), {})

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute's name that the root does not have yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # ---- tracing

    def trace(self, root: nn.Module | Callable, concrete_args: dict[str, Any] | tuple | None = None) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args: arguments, by name, that keep these values: constants, and nests in which PH marks what is an argument.

        TraceError where Python needs a value that is not known, with the user's line.
        """
        if isinstance(root, nn.Module):
            self.root = root
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, fn = nn.Module(), root
        if not isinstance(fn, types.FunctionType):
            raise AssertionError(
                f"symbolic_trace: expected a module or a Python function, got {type(fn).__name__}; put it into a function"
            )
        self.graph = Graph(tracer_cls=type(self))
        code = fn.__code__
        self.graph._co_fields = {name: getattr(code, name) for name in ("co_name", "co_filename", "co_firstlineno")}
        self._constants: dict[int, tuple[str, Any]] = {}
        self._collect_constants(self.root, "")
        variables = fn.__globals__
        _here.tracers.append(self)
        try:
            fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
            returned = _annotation(inspect.unwrap(fn), "return")
            with Patcher() as patcher:
                self._patch(patcher, variables)
                result = fn(*args)
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)
        finally:
            _here.tracers.pop()
            self.submodule_paths = None
        return self.graph

    def _collect_constants(self, module: nn.Module, prefix: str) -> None:
        """Tensors that are plain attributes of modules."""
        for name, value in vars(module).items():
            if isinstance(value, (strata.Tensor, TreeSpec)):
                self._constants[id(value)] = (prefix + name, value)
        for name, child in module.named_children():
            self._collect_constants(child, f"{prefix}{name}.")

    def _patch(self, patcher: Patcher, variables: dict[str, Any]) -> None:
        self._cache: dict[str, Proxy] = {}
        self._patcher = patcher
        patcher.put(nn.Module, "__getattr__", lambda: _traced_getattr(nn.Module.__getattr__))
        patcher.put(nn.Module, "__call__", lambda: _traced_call(nn.Module.__call__))
        for name in ("__getitem__", "__setitem__"):  # of tensors, which know no stand-ins as indices
            patcher.put(strata.Tensor, name, lambda name=name: recorded_method(strata.Tensor, name))
        patcher.marked()
        patcher.functions_in(variables, self._autowrap_function_ids)
        for module in self._autowrap_modules:
            patcher.functions_in(vars(module), self._autowrap_function_ids)

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: dict[str, Any] | tuple | None = None
    ) -> tuple[Callable, list]:
        """The function and the stand-ins for its arguments; where these are nests, a function of their leaves."""
        plain = inspect.unwrap(root_fn)
        code = plain.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        if is_module and total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        names = list(code.co_varnames[1 if is_module else 0 : total])
        args: list[Any] = [self.root] if is_module else []
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & _VARIADIC and total == 1:
            args += [self._placeholder_of(leaf, f"input_{i}", ()) for i, leaf in enumerate(concrete_args)]
            return root_fn, args
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments")
            concrete_args = dict(zip(names, concrete_args))
        signature = inspect.signature(plain)
        concrete = concrete_args or {}
        args += [self._argument(name, concrete, signature, plain) for name in names]
        if code.co_kwonlyargcount or code.co_flags & _VARIADIC:
            rest = iter(code.co_varnames[total:])
            for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
                if code.co_flags & flag:
                    args.append(self._argument(stars + next(rest), concrete, signature, plain))
            root_fn = _with_positional(root_fn, len(args))
        leaves, form = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in form.children_specs):
            return root_fn, args
        codegen = self.graph._codegen = _PyTreeCodeGen(list(code.co_varnames[:total]), form)

        def of_leaves(*leaves):  # without annotations, which would be the function's
            results, codegen.out_spec = tree_flatten(root_fn(*tree_unflatten(leaves, form)))
            return results

        return of_leaves, leaves

    def _argument(self, name: str, concrete: dict[str, Any], signature: inspect.Signature, plain: Callable) -> Any:
        """The stand-in for an argument, or what concrete_args says of it."""
        if name[0] == "*":
            return self.create_proxy("placeholder", name, (), {}, type_expr=_annotation(plain, name))
        declared = signature.parameters[name].default
        default = () if declared is inspect.Parameter.empty else (declared,)
        if name not in concrete:
            return self.create_proxy("placeholder", name, default, {}, type_expr=_annotation(plain, name))
        count = 0

        def leaf(value: Any) -> Any:
            nonlocal count
            count += 1
            out = self._placeholder_of(value, f"{name}_{count}", default)
            if isinstance(value, PHBase):
                return out
            if isinstance(value, base_types) and not isinstance(value, strata.Tensor):
                message = f"{name} has been specialized to have value {value} but got another value"
                self.create_proxy("call_function", strata._assert, (out == value, message), {})
            elif value is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, message), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make "
                    "sure that your inputs match the inputs you specialized the function with."
                )
            return value

        return tree_map(leaf, concrete[name])

    def _placeholder_of(self, value: Any, name: str, default: tuple) -> Proxy:
        out = self.create_proxy("placeholder", name, default, {})
        if isinstance(value, PHWithMeta):
            for key, given in vars(value).items():
                if not key.startswith("_") and not hasattr(out.node, key):
                    setattr(out.node, key, given)
        return out


def symbolic_trace(root: nn.Module | Callable, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module or function as a GraphModule, whose graph can be read and changed.

    The function runs once on stand-ins, so that a branch or loop over their values raises TraceError with its line.
    concrete_args: see Tracer.trace.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, nn.Module) else root.__name__)


def wrap(fn_or_name: Any) -> Any:
    """Marks a function of the calling module, given itself or by name: calls of it are recorded, not followed.

    For use at a module's top level, also as a decorator. RuntimeError for anything but a function or a name,
    NotImplementedError inside of a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)
