"""Traced functions and modules, which are called, looked at, and saved."""

from __future__ import annotations

import warnings

import strata
from strata import nn

from ._trace import Trace, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import IO, Any, NoReturn

    from strata._graph import Graph

__all__ = [
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracedModule",
    "trace",
    "trace_module",
]


def _refuse_pickling(self: Any, *_: Any) -> NoReturn:
    raise RuntimeError(f"{type(self).__name__}: a trace is neither pickled nor copied; save it with strata.jit.save")


class ScriptFunction:
    """A traced function: a call runs its compiled graph, with eager's bits and gradients."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.name = self.__name__ = trace.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._trace(*args, **kwargs)

    @property
    def graph(self) -> Graph:
        """The graph of the example inputs; behind the function's results stand tensors whose values it read."""
        return self._trace.graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """That graph as Python code."""
        return self._trace.code()

    def save(self, f: str | os.PathLike | IO[bytes]) -> None:
        """Writes it to a file. See strata.jit.save."""
        from ._files import save

        save(self, f)

    __reduce_ex__ = _refuse_pickling


class ScriptModule(nn.Module):
    """A module whose methods are traces. It shares the parameters and buffers of the module that was traced."""

    original_name: str
    _traces: dict[str, Trace]

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def _trace_of(self, method: str = "forward") -> Trace:
        if method not in self._traces:
            raise RuntimeError(f"{self.original_name}: {method} was not traced; trace the module that calls it, or strata.jit.trace_module it")
        return self._traces[method]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._trace_of()(*args, **kwargs)

    @property
    def graph(self) -> Graph:
        """The graph of forward's example inputs; behind its results stand tensors whose values it read."""
        return self._trace_of().graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """That graph as Python code."""
        return self._trace_of().code()

    def save(self, f: str | os.PathLike | IO[bytes], _extra_files: dict[str, Any] | None = None) -> None:
        """Writes it to a file. See strata.jit.save."""
        from ._files import save

        save(self, f, _extra_files)

    __reduce_ex__ = _refuse_pickling


class TracedModule(ScriptModule):
    """A module in a traced one: its parameters and submodules are there to be read; what runs is the whole trace."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.original_name = module.original_name if isinstance(module, ScriptModule) else type(module).__name__
        self.training = module.training
        self._traces = {}
        self._parameters, self._buffers = module._parameters, module._buffers
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        self._modules = {name: child and TracedModule(child) for name, child in module._modules.items()}

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """A traced module."""

    def __init__(self, module: nn.Module, traces: dict[str, Trace]) -> None:
        super().__init__(module)
        self._traces = traces
        for name in traces:
            if name != "forward":
                object.__setattr__(self, name, traces[name])


class RecursiveScriptModule(ScriptModule):
    """A module that was loaded: its parameters and buffers, as its graphs read them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.original_name = name
        self._traces = {}

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        for held in (own.get("_parameters"), own.get("_buffers")):
            if held and held.get(name, value) is not value:
                raise RuntimeError(f"{self.original_name}.{name}: a loaded trace runs with the tensors that it has; write into this one (copy_), or load_state_dict()")
        super().__setattr__(name, value)


def _nest(example_inputs: Any) -> tuple:
    if isinstance(example_inputs, (strata.Tensor, dict)):
        return (example_inputs,)
    if not isinstance(example_inputs, (tuple, list)):
        raise TypeError(f"trace: example_inputs: expected a tensor or a tuple of arguments, got {type(example_inputs).__name__}")
    return tuple(example_inputs)


def _traced(function: Callable, name: str, inputs: tuple[tuple, dict], checks: list[tuple[tuple, dict]], tolerance: float) -> Trace:
    made = Trace(function, name)
    made.capture(*inputs)
    for given in checks:
        check(made, given, tolerance)
    return made


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: list | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """A function or module as the operators that it runs on the example inputs, compiled; with eager's bits and gradients.

    example_inputs: a tensor, or the tuple of arguments; example_kwarg_inputs: keyword arguments instead. Inputs of another shape
    or dtype are traced anew when they come. Where Python reads a tensor's value (`if`, `.item()`), a TracerWarning names the line,
    and a call for which it would be another one raises RuntimeError. Modules keep the mode that they were traced in.

    check_trace: the function runs once more, on check_inputs if there are any, and TracerWarning says where the trace differs by
    more than check_tolerance. strict is not read: any nest may be returned.

    RuntimeError for operators whose results have sizes that values decide.
    """
    if isinstance(func, (ScriptModule, ScriptFunction)):
        warnings.warn("The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2)
        return func
    if example_inputs is None and not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if not callable(func):
        raise TypeError(f"trace: func: expected a function or module, got {type(func).__name__}")
    inputs = ((), dict(example_kwarg_inputs)) if example_inputs is None else (_nest(example_inputs), {})
    checks = [(_nest(i), {}) for i in check_inputs] if check_inputs else [inputs] if check_trace else []
    name = type(func).__name__ if isinstance(func, nn.Module) else getattr(func, "__name__", type(func).__name__)
    made = _traced(func, name, inputs, checks, check_tolerance)
    return TopLevelTracedModule(func, {"forward": made}) if isinstance(func, nn.Module) else ScriptFunction(made)


def trace_module(
    mod: nn.Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: list | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    **_: Any,
) -> TopLevelTracedModule:
    """A module with several traced methods. inputs: example arguments of each, by its name. Else as `trace`."""
    if not isinstance(mod, nn.Module):
        raise AttributeError(f"expected strata.nn.Module as the first argument, got {type(mod).__name__}")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    traces = {}
    for name, given in inputs.items():
        function = mod if name == "forward" else getattr(mod, name)
        checks = [(_nest(i[name]), {}) for i in check_inputs] if check_inputs else [(_nest(given), {})] if check_trace else []
        traces[name] = _traced(function, f"{type(mod).__name__}.{name}", (_nest(given), {}), checks, check_tolerance)
    return TopLevelTracedModule(mod, traces)
