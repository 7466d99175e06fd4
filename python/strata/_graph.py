"""Functions as graphs: captured once by running them, then compiled to fused kernels with eager's bits."""

from __future__ import annotations

import sys

import strata
from strata import _C, _capture, _lazy
from strata._graph_before import Asked, Before, held_by, modules_of, say_where
from strata._graph_form import Arguments, Results, parameter_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor
    from strata._graph_state import State

__all__ = ["CompiledGraph", "Graph", "Node", "graph", "load_graph"]


def _names(held: list[tuple[str, Any]], capture: _capture.Capture, captured: list) -> list[str]:
    """What the tensors are called that a function found outside of its arguments; each name is one tensor's."""
    found: dict[int, str] = {}
    modules = "strata.nn" in sys.modules
    for name, value in held:
        prefix = f"{name}." if name else ""
        if isinstance(value, strata.Tensor):
            found.setdefault(id(value), name)
        elif modules and isinstance(value, strata.nn.Module):
            for key, t in [*value.named_parameters(), *value.named_buffers()]:
                found.setdefault(id(t), prefix + key)
    for k, optimizer in enumerate(capture.optimizers):
        own = type(optimizer).__name__ + (f" {k}" if k else "")
        for i, (p, state) in enumerate(optimizer.state.items()):
            for key, t in state.items():
                if isinstance(t, strata.Tensor):
                    found.setdefault(id(t), f"{own}.{found.get(id(p)) or i}.{key}")
    groups = list(dict.fromkeys(id(slot.group) for slot in capture.slots.values()))
    for slot in capture.slots.values():
        found[id(slot.tensor)] = f"{slot.name} {groups.index(id(slot.group))}"
    taken: set[str] = set()
    names = []
    for i, t in enumerate(captured):
        name = found.get(id(t)) or f"captured {i}"
        while name in taken:
            name += "'"
        taken.add(name)
        names.append(name)
    return names


class Node:
    """A node of a graph, or an input of it.

    name: of its first result, as a graph prints it ("%3"); an input may be called by its name in the program, too.
    op: the operator ("aten::add.Tensor"), or "input", "constant", "if", "loop". reads, results: names of values.
    type: of the first result. span: the program's line.
    """

    def __init__(self, name: str, op: str, type: str, reads: list[str], results: list[str], span: str, of: Any = None):
        self.name, self.op, self.type, self.reads, self.results, self.span, self._of = name, op, type, reads, results, span, of

    def __repr__(self) -> str:
        if self.op == "input":
            return f"{self.name}: {self.type}" + (f" {self.span!r}" if self.span else "")
        return f"{', '.join(self.results)}: {self.type} = {self.op}({', '.join(self.reads)})" + (f"  # {self.span}" if self.span else "")


class Graph:
    """A captured function. Call it with arguments like those of the capture.

    `run` (and a call) interprets the operators one by one, without a backward; `compile` gives the fast form, which is also
    differentiable where the function was.
    """

    _over_shapes = True  # whether the capture computes nothing
    _before: Before | None = None
    _strict = True  # whether the function may change nothing but tensors' values

    def __init__(self, f: Any, args: tuple, kwargs: dict[str, Any]):
        self._arguments = Arguments(parameter_names(f), args, kwargs)
        tensors = self._arguments.tensors
        for name, t in zip(self._arguments.tensor_names(), tensors, strict=True):
            if t.layout is not strata.strided:
                raise NotImplementedError(
                    f"graph: input {name} is sparse ({t.layout}): a graph's places are fixed, its would not be; pass its indices and "
                    "values, or a dense tensor"
                )
        recording = _C._recording_begin(tensors, self._over_shapes)
        capture = _capture.begin(recording)
        try:
            if self._strict:
                self._before = Before(f, held_by(f, self._arguments.leaves), capture)
            captured = self._record(f, args, kwargs, tensors, recording, capture)
        except BaseException:
            if self._before is not None:
                self._before.put_back()
            raise
        finally:
            self._before = None
            capture.restore()
            _capture.end()
            _C._recording_stop(recording)
        held = held_by(f, self._arguments.leaves)
        names = _names(held, capture, captured)
        self._modes: State | None = None  # nothing that calls must look at
        if captured or capture.optimizers or capture.asked or modules_of(held):
            self._modes = _lazy.load("strata._graph_state").State(held, capture, dict(zip(names, captured, strict=True)), self._step)
        tangents = [None] * len(self._tangent_of)
        _C._graph_name(self._graph, [*self._arguments.tensor_names(), *tangents, *names])
        self._arguments.leaves, self._arguments.tensors, self._results.tensors = [], [], []
        autocast = strata.get_autocast_dtype("cpu") if strata.is_autocast_enabled("cpu") else None
        self._defaults = strata.get_default_dtype(), autocast
        self._compiled = _C._compiled(self._graph, self._nodes, self._count, self._tangent_of, self._wanted, self._step)
        if _C._logs("capture"):
            name = getattr(f, "__qualname__", type(f).__name__)
            _C._log("capture", f"{name}: {len(self.nodes)} nodes, {len(captured)} tensors captured\n{self}")

    def _record(self, f: Any, args: tuple, kwargs: dict[str, Any], tensors: list, recording: Any, capture: _capture.Capture) -> list:
        try:
            with Asked(self._strict):
                returned = f(*args, **kwargs)
        except Exception as error:
            say_where(error)
            raise
        self._results = Results(returned)
        for leaf in self._results.constants:
            if hasattr(type(leaf), "__next__"):
                raise TypeError(
                    f"graph: the function returns a {type(leaf).__name__}, whose items would be made when the capture is over; return a tuple or a list"
                )
        if self._before is not None:
            self._before.check()
        return self._end(tensors, recording, capture)

    def _end(self, tensors: list, recording: Any, capture: _capture.Capture) -> list:
        """The graph of what was recorded, with the gradients of what is differentiable. Gives the tensors that it captured."""
        _C._recording_take(recording, self._results.tensors)  # what is but returned
        self._nodes, captured = _C._recording_seen(recording)
        self._check_state(capture)
        known = [*tensors, *captured]
        self._results.bind(known)
        outputs = self._results.tensors
        # What backward() leaves in .grad is handed out at the end of each call: of which inputs, and as which results.
        self._grads, self._grads_before, left = self._note_gradients(recording, known)
        places = {id(t): i for i, t in enumerate(outputs)}
        all_outputs = list(outputs)
        self._grad_places = []
        for grad in left:
            place = places.setdefault(id(grad), len(all_outputs))
            if place == len(all_outputs):
                all_outputs.append(grad)
            self._grad_places.append(place)
        self._count = len(all_outputs)
        learned = [_C._recording_spent(recording, t) for t in outputs if t.requires_grad and not t.is_leaf]
        self._step = bool(left) or any(learned)
        self._live = not all(learned)  # a result's gradient can still be asked for
        self._tangent_of: list[int] = []
        self._wanted: list[int] = []
        if self._step:
            self._graph = _C._recording_finish(recording, all_outputs)
            return captured
        if _C._recording_histories(recording)[0]:
            raise NotImplementedError(
                "graph: a tensor from outside is written in place with what requires a gradient (or requires one now, or none); its history "
                "cannot be kept: write a copy of it and return that, or capture and call it under no_grad()"
            )
        learned = [i for i, t in enumerate(known) if t.requires_grad]
        self._tangent_of = [i for i, y in enumerate(outputs) if y.requires_grad and learned]
        self._wanted, grads = learned, []
        if self._tangent_of:
            tangents = [_C._recording_tangent(recording, outputs[i], f"gradient of result {i}") for i in self._tangent_of]
            ends = [outputs[i] for i in self._tangent_of]
            # Hooks of the inputs stay outside, where each call's gradients come to them.
            inputs = tuple(known[i] for i in learned)
            found = strata.autograd._collected(tuple(ends), tuple(tangents), False, False, inputs, True, input_hooks=False)
            _, now = _C._recording_seen(recording)
            if len(now) != len(captured):
                raise NotImplementedError("graph: the backward uses tensors that the forward does not; it cannot be captured yet")
            grads = found
        self._graph = _C._recording_finish(recording, [*outputs, *grads])
        return captured

    @staticmethod
    def _check_state(capture: _capture.Capture) -> None:
        for optimizer in capture.restore():
            raise RuntimeError(
                f"graph: {type(optimizer).__name__} makes its state in what is captured, so that each call would begin anew; "
                "call its init_state(), or one step, before"
            )

    @staticmethod
    def _note_gradients(recording: Any, known: list) -> tuple[list[int], list[tuple[int, int | None]], list]:
        """Inputs that get a .grad; inputs and what their .grad must be when a call begins (None, or another input); the grads."""
        gets, before, left = [], [], []
        at = {id(t): i for i, t in enumerate(known)}
        for i, t in enumerate(known):
            if not t.is_leaf or not t.requires_grad or t.grad is None:
                continue
            if _C._recording_made(recording, t.grad):
                gets.append(i)
                left.append(t.grad)
                if not _C._recording_cleared(recording, t):
                    before.append((i, None))
            elif id(t.grad) in at:
                before.append((i, at[id(t.grad)]))
        return gets, before, left

    def _begin(self, tensors: list) -> list:
        """Checks what the capture assumed of modes and gradients. Gives the inputs, captured ones too where results need them."""
        if self._modes is not None:
            self._modes.check()
        if not self._grads and not self._grads_before and not self._results.inputs:
            return tensors
        known = [*tensors, *_C._graph_captured(self._graph)]
        for i, grad in self._grads_before:
            if known[i].grad is not (None if grad is None else known[grad]):
                raise RuntimeError(
                    f"graph: the .grad of a parameter of shape {tuple(known[i].shape)} was {'None' if grad is None else 'another tensor'} "
                    "when the graph was captured; reset gradients in what is captured"
                )
        for i in self._grads:  # what is captured resets them or found none: their memory serves this call
            known[i].grad = None
        return known

    def _result(self, results: list, known: list) -> Any:
        for i, place in zip(self._grads, self._grad_places, strict=True):
            known[i].grad = results[place]
        return self._results.give(results, known)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self._arguments.take(args, kwargs)
        known = self._begin(tensors)
        return self._result(_C._compiled_interpret(self._compiled, tensors), known)

    def run(self, *args: Any, feed: dict | None = None, fetch: Any = None, **kwargs: Any) -> Any:
        """Runs the operators one by one, as eager would. Results are below autograd: they need no gradient.

        feed: tensors in place of values of the graph, by name ("%3" as print shows it, or an input's name) or by node of
        `nodes`; what was only needed for them is not run. fetch: a value, or a list or tuple of values, that are given back
        instead of the function's results: each as it was when its node had run. Then no more is run than these need: what
        they are computed from, writes to memory that they or what they read may lie in, and random numbers that are drawn
        before theirs, so that they have a whole run's bits. Without arguments, what is needed of the inputs must be fed.

        ValueError for names that are none, tensors that do not fit, and inputs that are needed and were not given.
        """
        if feed is None and fetch is None:
            return self(*args, **kwargs)
        alone = not args and not kwargs and self._arguments.count > 0
        tensors = [None] * self._arguments.count if alone else self._arguments.take(args, kwargs)
        fed = {self._value(key): t for key, t in (feed or {}).items()}
        if len(fed) < len(feed or {}):
            raise ValueError("run: two keys of feed are one value")
        params, _ = _C._graph_nodes(self._graph)
        tensors = [fed.pop(v) if v in fed else t for t, (v, _, _) in zip(tensors, params, strict=False)]
        graph, wanted, several = self._graph, None, isinstance(fetch, (list, tuple))
        if fetch is None:
            graph = _C._compiled_forward(self._compiled)
            if any(t is None for t in tensors) and (self._grads or self._grads_before or self._results.inputs):
                raise ValueError("run: this function needs all of its arguments; feed them, or fetch what does not need them")
            known = self._begin(tensors)
        else:
            if self._modes is not None:
                self._modes.check()
            wanted = [self._value(key) for key in (fetch if several else [fetch])]
            tensors = [*tensors, *[None] * len(self._tangent_of)]
        given = [*tensors, *_C._graph_captured(graph)]
        results = _C._graph_part(graph, given, list(fed), list(fed.values()), wanted)
        if wanted is None:
            return self._result(results, known)
        return type(fetch)(results) if several else results[0]

    def _value(self, key: Any) -> int:
        """The number of a value that is named so."""
        if isinstance(key, Node):
            if key._of is not None and key._of is not self._graph:
                raise ValueError(f"run: {key!r} is a node of another graph; name one of this graph's nodes")
            if len(key.results) != 1:
                raise ValueError(f"run: {key!r} has {len(key.results)} results; name one of them: {', '.join(key.results)}")
            key = key.results[0]
        if not isinstance(key, str):
            raise TypeError(f"run: expected a value's name ('%3'), an input's name or a node of the graph, got {type(key).__name__}")
        nodes = self.nodes
        for node in nodes:
            if key in node.results or (node.op == "input" and node.span and key == node.span):
                return int((key if key in node.results else node.name)[1:])
        import difflib

        names = [r for n in nodes for r in n.results] + [n.span for n in nodes if n.op == "input" and n.span]
        near = difflib.get_close_matches(key, names, 3)
        raise ValueError(f"run: the graph has no value {key!r}" + (f"; is it {', '.join(near)}?" if near else "; print(g) shows them"))

    @property
    def nodes(self) -> list[Node]:
        """Its inputs and nodes in order. (What lies in blocks of `if` and `loop` is theirs.)"""
        params, nodes = _C._graph_nodes(self._graph)
        found = [Node(f"%{v}", "input", type, [], [f"%{v}"], name, self._graph) for v, name, type in params]
        for op, results, type, reads, span in nodes:
            named = [f"%{v}" for v in results if v >= 0]
            found.append(Node(named[0] if named else "", op, type, [f"%{v}" for v in reads], named, span, self._graph))
        return found

    @property
    def captured(self) -> dict[str, Tensor]:
        """The tensors that the function found outside of its arguments, by name: a call uses them as they are then."""
        params, _ = _C._graph_nodes(self._graph)
        tensors = _C._graph_captured(self._graph)
        return dict(zip([name for _, name, _ in params[len(params) - len(tensors) :]], tensors, strict=True))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the graph as text, and beside it, as `path`.weights, the tensors that it captured. strata.load_graph reads it.

        The text says what arguments are like, which must be tensors, numbers, strings, None, dtypes and devices in tuples,
        lists and dicts (TypeError names others), then the operators as print(g) shows them. Values are those of now: what
        an optimiser's learning rate is becomes a tensor among the weights.
        """
        _lazy.load("strata._graph_file").save(self, path)  # json and zlib take milliseconds to import

    def draw(self, path: str) -> None:
        """Writes the graph as an SVG picture."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_C._graph_draw(self._graph))

    def compile(self, *, lines: bool = False, numerics: str = "exact") -> CompiledGraph:
        """The function with fused kernels, which are compiled at the first call.

        numerics: "exact" has eager's bits. "fast" leaves out roundings of bfloat16 and float16 between operators of one kernel:
        a value goes on in float32, and what memory holds is rounded as ever. Operators whose results jump (comparisons of
        two values, floor, argmax, casts to integers) read rounded values in both. `explain()` says where it did so. Results
        are then closer to those of float32 as a rule, differ from eager's, and change with what becomes one kernel.

        lines: the kernels know the program's lines that they come from, which a debugger (gdb) then shows and stops at. They
        have the same bits, and are compiled and kept apart from those without.
        """
        if numerics not in ("exact", "fast"):
            raise ValueError(f"compile: expected numerics 'exact' or 'fast', got {numerics!r}")
        return CompiledGraph(self, lines, numerics)

    def __str__(self) -> str:
        return _C._graph_text(self._graph)


class CompiledGraph(_C._Compiled):
    """A captured function as kernels. Results, gradients and written arguments have eager's bits, where `numerics` is "exact".

    Raises ValueError for arguments that differ from the captured ones in form, shape, strides, dtype or device, and RuntimeError
    where a module's mode, numbers, members or hooks, the default dtype or another mode that the function asked for have changed since.
    """

    def __init__(self, source: Graph, lines: bool = False, numerics: str = "exact"):
        self.numerics = numerics
        self._source = source
        fast = numerics == "fast"
        self._handle = _C._compiled_with(source._compiled, lines, fast) if lines or fast else source._compiled
        # Functions of tensors alone need nothing of Python at a call but the check of modes, where there are some.
        bare = source._arguments.plain and source._results.plain is not None and not source._grads and not source._grads_before
        modes = source._modes is not None and source._modes.any
        results = source._results
        if bare:
            self._plain(self._handle, results.plain, results.order, source._modes.check if modes else None)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """What a call does that is not of tensors alone."""
        source = self._source
        tensors = source._arguments.take(args, kwargs)
        known = source._begin(tensors)
        return source._result(_C._compiled_call(self._handle, tensors), known)

    def _text(self, what: str, comment: str = "#") -> str:
        return "\n".join(f"{comment} {name}\n{text}" for name, text in _C._compiled_text(self._handle, what))

    def source(self, *, lines: bool = False) -> str:
        """The C text of the kernels as a file that compiles by hand (cc -O2 -ffp-contract=off -fopenmp): those of the forward, and
        behind `// backward`, with -DBACKWARD in their place, those of the backward.

        At its end a driver: `run_0(memory)` and so on run a kernel over whole tensors, whose sizes and strides it says.
        lines: before each statement of an operator, a #line to the program's line that called it, so that what is compiled
        with -g shows these. An expression that several operators share has the first one's.
        """
        halves = _C._compiled_text(self._handle, "lines" if lines else "source")
        if len(halves) == 1:
            return "// {}\n{}".format(*halves[0])
        return "\n".join(f"// {name}\n#{word} BACKWARD\n{text}#endif" for (name, text), word in zip(halves, ("ifndef", "ifdef")))

    def explain(self) -> str:
        """Which operators became which kernel, with the user's lines, and why no more of them are one; bytes moved; compile time."""
        return self._text("explain")

    def memory_plan(self) -> str:
        """What lies between the kernels: bytes and places in one arena."""
        return self._text("memory")

    def ir(self, stage: str = "graph") -> str:
        """A stage as text: "graph" (forward and backward apart), "launches" (over places in memory) or "source"."""
        if stage not in ("graph", "launches", "source"):
            raise ValueError(f"ir: expected the stage 'graph', 'launches' or 'source', got {stage!r}")
        return self.source() if stage == "source" else self._text(stage)


def graph(f: Callable, *example_inputs: Any, **example_keywords: Any) -> Graph:
    """Captures f by running it once on the example inputs: the operators that it runs, below autograd.

    They run over shapes: nothing is computed, written or drawn, so that parameters, gradients, an optimiser's state and the
    generator are afterwards what they were. What f keeps elsewhere, as in a list, are tensors without values. Attributes of
    modules, numbers of optimisers and other generators that f changes are put back, with a RuntimeError: calls would not change them.

    f: any function of tensors, nested in tuples, lists and dicts, and of constants. Tensors that it finds outside of its
    arguments, as the parameters of a module, are inputs, too: a call uses them as they are then. Python code runs now alone:
    its branches and numbers are those of the example, and a call with another number raises ValueError.

    TypeError where f returns a generator. RuntimeError, at the line of f, where Python asks for a tensor's value (`if`, `.item()`, `int()`), and for operators
    whose results have sizes that values decide.
    """
    return Graph(f, example_inputs, example_keywords)


def load_graph(path: str | os.PathLike) -> Graph:
    """A graph that was saved, with the tensors beside it. It runs and compiles as the one that was saved did.

    Nothing in the files is run but the operators that the text names. RuntimeError where they are damaged or were written by
    another version, ValueError with line and column where the text is no graph, FileNotFoundError where there are none.
    """
    graph = Graph.__new__(Graph)
    _lazy.load("strata._graph_file").load(graph, path)
    return graph
