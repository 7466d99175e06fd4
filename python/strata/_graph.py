"""Functions as graphs: captured once by running them, then compiled to fused kernels with eager's bits."""

from __future__ import annotations

from functools import partial

import strata
from strata import _C
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["CompiledGraph", "Graph", "graph"]


def _modules(f: Any, args: tuple) -> list:
    """The modules that a function may ask for their mode: itself, what it is bound to or closes over, its arguments."""
    held = [f, getattr(f, "__self__", None), *args]
    for cell in getattr(f, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    names = getattr(getattr(f, "__code__", None), "co_names", ())
    held += [f.__globals__[n] for n in names if n in getattr(f, "__globals__", {})]
    if not any(type(h).__module__.startswith("strata.nn") or hasattr(h, "named_modules") for h in held):
        return []
    return [m for h in held if isinstance(h, strata.nn.Module) for m in h.modules()]


class _Modes:
    """The modes of the modules that a capture used. (What tensors and the default dtype were, the graph knows itself.)"""

    def __init__(self, f: Any, args: tuple):
        self.training = [(m, m.training) for m in _modules(f, args)]

    def check(self) -> None:
        for module, training in self.training:
            if module.training != training:
                raise RuntimeError(
                    f"graph: {type(module).__name__}.training was {training} when the graph was captured, and is {module.training}; "
                    "capture a graph for each mode"
                )


class Graph:
    """A captured function. Call it with arguments like those of the capture.

    `run` (and a call) interprets the operators one by one, without a backward; `compile` gives the fast form, which is also
    differentiable where the function was.
    """

    def __init__(self, f: Any, args: tuple):
        leaves, self._in = tree_flatten(args)
        self._constants = [None if isinstance(leaf, strata.Tensor) else leaf for leaf in leaves]
        self._is_tensor = [isinstance(leaf, strata.Tensor) for leaf in leaves]
        tensors = [leaf for leaf in leaves if isinstance(leaf, strata.Tensor)]
        recording = _C._recording_begin(tensors)
        try:
            outputs = self._capture(f, args, tensors, recording)
        finally:
            _C._recording_stop(recording)
        self._outputs = len(outputs)
        self._modes = _Modes(f, args)
        # Of a function of tensors alone: whether it gives a tensor (0), a tuple (1) or a list (2) of them.
        self._form = None
        if all(isinstance(a, strata.Tensor) for a in args) and all(self._out_tensor) and outputs:
            self._form = self._form_of

    def _capture(self, f: Any, args: tuple, tensors: list, recording: Any) -> list:
        returned = f(*args)
        results, self._out = tree_flatten(returned)
        flat = type(returned) in (tuple, list) and all(isinstance(r, strata.Tensor) for r in returned)
        self._form_of = 0 if isinstance(returned, strata.Tensor) else (1 if type(returned) is tuple else 2) if flat else None
        self._out_constants = [None if isinstance(r, strata.Tensor) else r for r in results]
        self._out_tensor = [isinstance(r, strata.Tensor) for r in results]
        outputs = [r for r in results if isinstance(r, strata.Tensor)]
        self._nodes, captured = _C._recording_seen(recording)
        for t in [*tensors, *captured]:
            if t.is_leaf and t.requires_grad and t.grad is not None and _C._recording_made(recording, t.grad):
                raise NotImplementedError(
                    "graph: the function calls backward() and leaves gradients in .grad, which a graph cannot hand out yet; "
                    "take them with strata.autograd.grad and return them, or capture the loss and call backward() on it"
                )
        learned = [i for i, t in enumerate([*tensors, *captured]) if t.requires_grad]
        self._tangent_of = [i for i, y in enumerate(outputs) if y.requires_grad and learned]
        self._wanted: list[int] = []
        grads = []
        if self._tangent_of:
            ends = [outputs[i] for i in self._tangent_of]
            tangents = [_C._recording_tangent(recording, outputs[i], f"gradient of result {i}") for i in self._tangent_of]
            seeds = [tensors[i] if i < len(tensors) else captured[i - len(tensors)] for i in learned]
            found = strata.autograd.grad(ends, seeds, tangents, allow_unused=True)
            _, now = _C._recording_seen(recording)
            if len(now) != len(captured):
                raise NotImplementedError("graph: the backward uses tensors that the forward does not; it cannot be captured yet")
            for i, g in zip(learned, found, strict=True):
                if g is not None:
                    self._wanted.append(i)
                    grads.append(g)
        self._graph = _C._recording_finish(recording, [*outputs, *grads])
        return outputs

    def _tensors(self, args: tuple) -> list:
        leaves, spec = tree_flatten(args)
        if spec != self._in:
            raise ValueError(f"graph: expected arguments of the form {self._in}, as they were captured, got {spec}")
        tensors = []
        for leaf, constant, is_tensor in zip(leaves, self._constants, self._is_tensor, strict=True):
            if is_tensor != isinstance(leaf, strata.Tensor) or not is_tensor and (type(leaf) is not type(constant) or leaf != constant):
                raise ValueError(f"graph: expected {'a tensor' if is_tensor else repr(constant)}, as it was captured, got {leaf!r}")
            if is_tensor:
                tensors.append(leaf)
        return tensors

    def _result(self, results: list) -> Any:
        rest = iter(results)
        return tree_unflatten([next(rest) if t else c for t, c in zip(self._out_tensor, self._out_constants, strict=True)], self._out)

    def run(self, *args: Any) -> Any:
        """Runs the operators one by one, as eager would. Results are below autograd: they need no gradient."""
        self._modes.check()
        compiled = self._handle()
        return self._result(_C._compiled_interpret(compiled, self._tensors(args)))

    __call__ = run

    def _handle(self) -> Any:
        if not hasattr(self, "_compiled"):
            self._compiled = _C._compiled(self._graph, self._nodes, self._outputs, self._tangent_of, self._wanted)
        return self._compiled

    def compile(self) -> CompiledGraph:
        """The function with fused kernels, which are compiled at the first call."""
        return CompiledGraph(self)

    def __str__(self) -> str:
        return _C._graph_text(self._graph)


class CompiledGraph:
    """A captured function as kernels. Results, gradients and written arguments have eager's bits.

    Raises ValueError for arguments that differ from the captured ones in form, shape, strides, dtype or device, and RuntimeError
    where a module's mode or the default dtype has changed since.
    """

    def __init__(self, source: Graph):
        self._source = source
        self._handle = source._handle()
        # Functions of tensors alone, whose modules have no modes, need nothing of Python at a call.
        self._plain = None if source._form is None or source._modes.training else partial(_C._compiled_run, self._handle, source._form)

    def __call__(self, *args: Any) -> Any:
        if self._plain is not None:
            return self._plain(*args)
        source = self._source
        source._modes.check()
        return source._result(_C._compiled_call(self._handle, source._tensors(args)))

    def _text(self, what: str) -> str:
        return "\n".join(f"# {name}\n{text}" for name, text in _C._compiled_text(self._handle, what))

    def source(self) -> str:
        """The C text of the kernels, forward and backward."""
        return self._text("source")

    def explain(self) -> str:
        """Which operators became which kernel, with the user's lines, and why no more of them are one."""
        return self._text("explain")

    def memory_plan(self) -> str:
        """What lies between the kernels: bytes and places in one arena."""
        return self._text("memory")

    def ir(self, stage: str = "graph") -> str:
        """A stage as text: "graph" (forward and backward apart), "launches" (over places in memory) or "source"."""
        if stage not in ("graph", "launches", "source"):
            raise ValueError(f"ir: expected the stage 'graph', 'launches' or 'source', got {stage!r}")
        return self._text(stage)


def graph(f: Callable, *example_inputs: Any) -> Graph:
    """Captures f by running it once on the example inputs: the operators that it runs, below autograd.

    f: any function of tensors, nested in tuples, lists and dicts, and of constants. Tensors that it finds outside of its
    arguments, as the parameters of a module, are inputs, too: a call uses them as they are then. Python code runs now alone:
    its branches and numbers are those of the example.

    Raises RuntimeError, at the line of f, where Python asks for a tensor's value (`if`, `.item()`, `int()`), and for operators
    whose results have sizes that values decide.
    """
    return Graph(f, example_inputs)
