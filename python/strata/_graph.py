"""Functions as graphs: captured once by running them, then compiled to fused kernels with eager's bits."""

from __future__ import annotations

import sys
from functools import partial

import strata
from strata import _C, _capture
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
    if "strata.nn" not in sys.modules:
        return []
    return [m for h in held if isinstance(h, strata.nn.Module) for m in h.modules()]


class _Modes:
    """Modes of modules and numbers of optimisers that a capture used. (What tensors and the default dtype were, the graph knows.)"""

    def __init__(self, f: Any, args: tuple, capture: _capture.Capture):
        self.training = [(m, m.training) for m in _modules(f, args)]
        self.rates = capture.rates
        slotted = [id(group) for group, _ in capture.rates]
        self.numbers = [
            (optimizer, group, name, value)
            for optimizer in capture.optimizers
            for group in optimizer.param_groups
            for name, value in group.items()
            if name != "params" and not isinstance(value, strata.Tensor) and not (name == "lr" and id(group) in slotted)
        ]
        self.any = bool(self.training or self.rates or self.numbers)

    def check(self) -> None:
        for module, training in self.training:
            if module.training != training:
                raise RuntimeError(
                    f"graph: {type(module).__name__}.training was {training} when the graph was captured, and is {module.training}; "
                    "capture a graph for each mode"
                )
        for optimizer, group, name, value in self.numbers:
            if group[name] != value:
                raise RuntimeError(
                    f"graph: {type(optimizer).__name__}'s {name} was {value!r} when the graph was captured, and is {group[name]!r}; "
                    "capture it again"
                )
        for group, slot in self.rates:
            with strata.no_grad():
                slot.fill_(float(group["lr"]))


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
        capture = _capture.begin()
        try:
            self._record(f, args, tensors, recording, capture)
        finally:
            _capture.end()
            _C._recording_stop(recording)
        self._modes = _Modes(f, args, capture)
        # Of a function of tensors alone: whether it gives a tensor (0), a tuple (1) or a list (2) of them.
        plain = all(isinstance(a, strata.Tensor) for a in args) and all(self._out_tensor) and self._outputs
        self._form = self._form if plain and not self._grads and not self._grads_before else None

    def _record(self, f: Any, args: tuple, tensors: list, recording: Any, capture: _capture.Capture) -> None:
        returned = f(*args)
        results, self._out = tree_flatten(returned)
        flat = type(returned) in (tuple, list) and all(isinstance(r, strata.Tensor) for r in returned)
        self._form = 0 if isinstance(returned, strata.Tensor) else (1 if type(returned) is tuple else 2) if flat else None
        self._out_constants = [None if isinstance(r, strata.Tensor) else r for r in results]
        self._out_tensor = [isinstance(r, strata.Tensor) for r in results]
        outputs = [r for r in results if isinstance(r, strata.Tensor)]
        self._outputs = len(outputs)
        self._nodes, captured = _C._recording_seen(recording)
        self._check_state(recording, capture)
        known = [*tensors, *captured]
        left = self._note_gradients(recording, known)
        self._tangent_of: list[int] = []
        self._wanted: list[int] = []
        if left or self._grads_before:
            self._graph = _C._recording_finish(recording, [*outputs, *left])
            return
        learned = [i for i, t in enumerate(known) if t.requires_grad]
        self._tangent_of = [i for i, y in enumerate(outputs) if y.requires_grad and learned]
        self._wanted, grads = learned, []
        if self._tangent_of:
            tangents = [_C._recording_tangent(recording, outputs[i], f"gradient of result {i}") for i in self._tangent_of]
            ends = [outputs[i] for i in self._tangent_of]
            found = strata.autograd.grad(ends, [known[i] for i in learned], tangents, allow_unused=True)
            _, now = _C._recording_seen(recording)
            if len(now) != len(captured):
                raise NotImplementedError("graph: the backward uses tensors that the forward does not; it cannot be captured yet")
            grads = found
        self._graph = _C._recording_finish(recording, [*outputs, *grads])

    def _check_state(self, recording: Any, capture: _capture.Capture) -> None:
        for optimizer in capture.optimizers:
            for state in optimizer.state.values():
                if any(isinstance(v, strata.Tensor) and _C._recording_made(recording, v) for v in state.values()):
                    raise RuntimeError(
                        f"graph: {type(optimizer).__name__} makes its state in what is captured, so that each call would begin anew; "
                        "call its init_state(), or one step, before"
                    )

    def _note_gradients(self, recording: Any, known: list) -> list:
        """What backward() leaves in .grad is handed out at the end of each call."""
        self._grads: list = []  # tensors that get one
        self._grads_before: list[tuple] = []  # tensors and what their .grad must be when a call begins
        left = []
        for t in known:
            if not t.is_leaf or not t.requires_grad or t.grad is None:
                continue
            if _C._recording_made(recording, t.grad):
                self._grads.append(t)
                left.append(t.grad)
                if not _C._recording_cleared(recording, t):
                    self._grads_before.append((t, None))
            elif any(t.grad is k for k in known):
                self._grads_before.append((t, t.grad))
        return left

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

    def _begin(self) -> None:
        self._modes.check()
        for t, grad in self._grads_before:
            if t.grad is not grad:
                raise RuntimeError(
                    f"graph: the .grad of a parameter of shape {tuple(t.shape)} was {'None' if grad is None else 'another tensor'} when the "
                    "graph was captured; reset gradients in what is captured"
                )
        for t in self._grads:  # what is captured resets them or found none: their memory serves this call
            t.grad = None

    def _result(self, results: list) -> Any:
        for t, grad in zip(self._grads, results[self._outputs :], strict=True):
            t.grad = grad
        rest = iter(results)
        return tree_unflatten([next(rest) if t else c for t, c in zip(self._out_tensor, self._out_constants, strict=True)], self._out)

    def run(self, *args: Any) -> Any:
        """Runs the operators one by one, as eager would. Results are below autograd: they need no gradient."""
        self._begin()
        return self._result(_C._compiled_interpret(self._handle(), self._tensors(args)))

    __call__ = run

    def _handle(self) -> Any:
        if not hasattr(self, "_compiled"):
            outputs = self._outputs + len(self._grads)
            self._compiled = _C._compiled(self._graph, self._nodes, outputs, self._tangent_of, self._wanted, bool(self._grads_before or self._grads))
        return self._compiled

    def draw(self, path: str) -> None:
        """Writes the graph as an SVG picture."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_C._graph_draw(self._graph))

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
        self._plain = None if source._form is None or source._modes.any else partial(_C._compiled_run, self._handle, source._form)

    def __call__(self, *args: Any) -> Any:
        if self._plain is not None:
            return self._plain(*args)
        source = self._source
        source._begin()
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
