"""jit.script as PyTorch does it with PYTORCH_JIT=0: Python runs what was given. There is no compiler of source text.

Results, gradients and errors are those of the function or module as it is. What only that compiler has (graph, code, save) raises
NotImplementedError and names the way out.
"""

from __future__ import annotations

import functools
import types

from strata import nn
from strata.futures import Future

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_WAY_OUT = "strata.jit.trace records a graph of example inputs, which has graph, code and save; strata.export one that can be saved, too"


def _absent(name: str) -> property:
    def refuse(self: Any) -> NoReturn:
        raise NotImplementedError(f"strata.jit.script: {name} is not provided, as source text is not compiled: {_WAY_OUT}")

    return property(refuse)


class _Absent:
    """What a compiled function or module has and this one has not."""

    code = _absent("code")
    code_with_constants = _absent("code_with_constants")
    graph = _absent("graph")
    inlined_graph = _absent("inlined_graph")
    graph_for = _absent("graph_for")
    save = _absent("save")
    save_to_buffer = _absent("save_to_buffer")
    schema = _absent("schema")


class ScriptFunction(_Absent):
    """A function that was scripted: a call runs it."""

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @property
    def name(self) -> str:
        return self._function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function or module, which runs as it is; a class is given back as it is.

    A module becomes a view of itself: the same parameters, buffers, submodules and attributes, which prints as a script module.
    TypeError for what is neither.
    """
    if isinstance(obj, (_Absent, type)):
        return obj
    if isinstance(obj, nn.Module):
        return _scripted(obj)
    if isinstance(obj, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        return ScriptFunction(obj)
    if callable(obj):
        return ScriptFunction(obj.__call__)
    raise TypeError(f"script: expected a function, a module or a class, got {type(obj).__name__}")


def _scripted(module: nn.Module) -> nn.Module:
    view = object.__new__(_view_of(type(module)))
    vars(view).update(vars(module))
    view._modules = {name: _scripted(child) if child is not None else None for name, child in module._modules.items()}
    return view


@functools.cache
def _view_of(kind: type) -> type:
    """The class of views of modules of that class."""
    if issubclass(kind, _Absent):
        return kind

    def extra_repr(self: nn.Module) -> str:
        return f"original_name={kind.__name__}"

    body = {
        "__module__": "strata.jit._script",
        "_get_name": lambda self: "RecursiveScriptModule",
        "extra_repr": extra_repr,
        "original_name": kind.__name__,
    }
    return type(kind.__name__, (_Absent, kind), body)


def script_method(fn: Callable) -> Callable:
    """The method itself."""
    return fn


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """A future of func(*args, **kwargs), which runs at once, as it does in PyTorch outside of compiled source."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """What the future holds."""
    return future.wait()
