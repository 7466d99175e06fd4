"""jit.trace: what a function does to example inputs, as a graph, with guards where Python read a tensor's value.

A read value is a constant of the graph, as in PyTorch's traces. Here a call compares it with what it would be for that call's inputs,
and raises where it is another one: the operators of the other branch were never seen. Inputs of another shape or dtype are traced
anew, which must read the same values at the same lines.
"""

from __future__ import annotations

import functools
import warnings
from _thread import _local, allocate_lock
from typing import NamedTuple

import strata
from strata import _C
from strata._frames import line_text, user_frame
from strata._graph import Graph
from strata._graph_before import held_by
from strata._patching import Patches
from strata.utils._pytree import tree_flatten, tree_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor

__all__ = ["Read", "Trace", "TracerWarning", "TracingCheckError", "is_tracing"]

# Methods of tensors that give values to Python, and what PyTorch calls what they give.
_READS = {
    "__bool__": "a Python boolean",
    "__int__": "a Python integer",
    "__float__": "a Python float",
    "__complex__": "a Python complex number",
    "__index__": "a Python index",
    "item": "a Python number",
    "tolist": "a Python list",
    "numpy": "a NumPy array",
    "__array__": "a NumPy array",
}
_SHOWN = ("__repr__", "__str__", "__format__")  # texts of tensors decide nothing


class TracerWarning(Warning):
    """A traced function reads a tensor's value, draws random numbers, or differs from its trace."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """For PyTorch's programs: warnings name the user's lines here, none of the library."""


class TracingCheckError(Exception):
    """A trace failed its check."""


class Read(NamedTuple):
    """A value that Python read while it was traced: what it was taken as, the value as text, and the line."""

    kind: str
    value: str
    line: str

    def of(self, t: Tensor) -> str:
        """What would be read of another tensor."""
        if self.kind == _READS["__bool__"]:
            return repr(bool(t))
        return repr(int(t) if self.kind in (_READS["__int__"], _READS["__index__"]) else t.tolist())


class _Here(_local):
    watch: _Watch | None = None
    depth = 0  # traces under way


_here = _Here()


def is_tracing() -> bool:
    """Whether a function is being traced on this thread."""
    return _here.depth > 0


class _Watch(Patches):
    """A context in which this thread's reads of tensors' values are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Read] = []
        self.kept: list[Tensor] = []  # copies of the tensors that were read, which are results of the graph

    def __enter__(self) -> _Watch:
        self.outer, _here.watch = _here.watch, self
        _here.depth += 1
        for name in (*_READS, *_SHOWN):
            self.put(strata.Tensor, name, lambda name=name: _watched(name, getattr(strata.Tensor, name)))
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        _here.depth -= 1
        _here.watch = self.outer

    def _note(self, kind: str, kept: Tensor) -> None:
        frame = user_frame()
        read = Read(kind, "", line_text(frame))
        self.reads.append(read._replace(value=_C._recording_aside(lambda: read.of(kept))))
        self.kept.append(kept)
        warnings.warn_explicit(
            f"Converting a tensor to {kind} might cause the trace to be incorrect. We can't record the data flow of Python values, so this "
            "value will be treated as a constant in the future. This means that the trace might not generalize to other inputs!",
            TracerWarning,
            frame.f_code.co_filename if frame else "<unknown>",
            frame.f_lineno if frame else 1,
        )


def _watched(name: str, method: Callable) -> Callable:
    """A tensor's method, which notes what it gives to Python where that is watched."""

    @functools.wraps(method)
    def watched(t: Tensor, *args: Any, **kwargs: Any) -> Any:
        watch = _here.watch
        if watch is None or _C._recording() is None:  # as in an operator of the program's own that is one node
            return method(t, *args, **kwargs)
        kept = None if name in _SHOWN else t.detach().clone()
        _here.watch = None  # what it calls in its turn
        try:
            given = _C._recording_aside(lambda: method(t, *args, **kwargs))
            if kept is not None:
                watch._note(_READS[name], kept)
        finally:
            _here.watch = watch
        return given

    return watched


class _Captured(Graph):
    """A graph whose results are the function's, with the tensors whose values were read where there are any."""

    _over_shapes, _strict = False, False  # reads are of values

    def __init__(self, f: Any, args: tuple, kwargs: dict[str, Any]):
        self.reads: list[Read] = []
        super().__init__(f, args, kwargs)

    def _record(self, f: Any, *rest: Any) -> list:
        def watched(*args: Any, **kwargs: Any) -> Any:
            with _Watch() as watch:
                returned = f(*args, **kwargs)
            self.reads = watch.reads
            return (returned, watch.kept) if watch.kept else returned

        return super()._record(watched, *rest)


def _refused(name: str, read: Read, now: str) -> RuntimeError:
    return RuntimeError(
        f"{name}: the trace is not one of this call: a tensor became {read.kind}, which was {read.value} for the example inputs and {now} "
        f"for these, and what depends on it may be other operators.\n{read.line}\n"
        "Choose with strata.where, keep the value in a tensor, or trace again with inputs like these. An operator of your own that reads "
        "values is one node of the trace where it has a kernel for shapes (register_fake)."
    )


class Trace:
    """A function's graphs, one for each form of its arguments. Without a function, as after loading, there are no further ones."""

    def __init__(self, f: Callable | None, name: str) -> None:
        self.f, self.name = f, name
        self.graphs: list[Any] = []  # each with its reads
        self.modes: list[tuple[strata.nn.Module, bool]] = []
        self.example: tuple[tuple, dict] | None = None  # the first arguments, their tensors without values
        self.program: Any = None  # after loading: the function for inputs of other sizes, where the file has one (_sizes.py)
        self._by_form: dict[Any, Callable] = {}
        self._lock = allocate_lock()

    @property
    def graph(self) -> Graph:
        """Of the example inputs."""
        return self.graphs[0]

    def capture(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Traces the function with such arguments."""
        with strata.inference_mode(False), strata.enable_grad():  # calls that need no gradient find a graph that could give one
            graph = _Captured(self.f, args, kwargs)
        self.modes = graph._modes.let_go_of_modules() if graph._modes is not None else []  # the trace keeps them, whatever modules are set to
        self.example = tree_map(_without_values, (args, kwargs))
        self.add(graph, form_of(args, kwargs))

    def _capture_again(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Traces it for another form of arguments; nothing is changed by that run, so that the call itself has eager's effects."""
        now = [module.training for module, _ in self.modes]
        try:
            for module, training in self.modes:
                module.training = training
            with warnings.catch_warnings(), _Unchanged(self.f, self.name):
                warnings.simplefilter("ignore", TracerWarning)
                graph = self._captured_like(args, kwargs)
        finally:
            for (module, _), training in zip(self.modes, now):
                module.training = training
        if graph._modes is not None:
            graph._modes.let_go_of_modules()
        self._same_reads(graph.reads)
        self.add(graph, form_of(args, kwargs))

    def _captured_like(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A graph of such arguments, in the modes of the first one."""
        autocast = self.graph._defaults[1]
        with strata.inference_mode(False), strata.enable_grad(), strata.autocast("cpu", autocast or None, enabled=bool(autocast)):
            return _Captured(self.f, *tree_map(_copied, (args, kwargs)))

    def add(self, graph: Any, form: Any) -> None:
        """One more graph, with its reads, for arguments of that form."""
        self.graphs.append(graph)
        self._by_form[form] = self._runner(graph)
        self._last = form, self._by_form[form]

    def forms(self) -> list[tuple[Any, Any]]:
        """Each form of arguments, with its graph."""
        return list(zip(self._by_form, self.graphs))

    def _same_reads(self, reads: list[Read]) -> None:
        """Whether other inputs took the same way through the function."""
        first = self.graph.reads
        for old, new in zip(first, reads):
            if old.line != new.line or old.kind != new.kind or old.value != new.value:
                raise _refused(self.name, old, new.value if old.line == new.line else "another line is read")
        if len(first) != len(reads):
            longer = first if len(first) > len(reads) else reads
            raise _refused(self.name, longer[min(len(first), len(reads))], "not read" if longer is first else "read")

    def _runner(self, graph: Any) -> Callable:
        compiled, reads, name = graph.compile(), graph.reads, self.name
        if not reads:
            return compiled

        def run(*args: Any, **kwargs: Any) -> Any:
            returned, kept = compiled(*args, **kwargs)
            for read, t in zip(reads, kept):
                now = read.of(t)
                if now != read.value:
                    raise _refused(name, read, now)
            return returned

        return run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last, run = self._last
        try:
            return run(*args, **kwargs)  # a graph says itself, before it runs, what it was not captured for
        except (RuntimeError, ValueError):
            form = form_of(args, kwargs)
            if form == last:
                raise
        with self._lock:
            if form not in self._by_form:
                self._not_seen(form, args, kwargs)
        self._last = form, run = form, self._by_form[form]
        return run(*args, **kwargs)

    def _not_seen(self, form: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Traces the function for one more form of arguments, where there is a function."""
        if self.f is None and self.program is not None:
            self.f = self.program.module()
        if self.f is None:
            known = "; ".join(map(form_text, self._by_form))
            raise ValueError(
                f"{self.name}: the loaded trace takes ({known}), got ({form_text(form)}). Before it is saved, call the traced module once with "
                "such inputs: save keeps the graph of each form"
            )
        try:
            self._capture_again(args, kwargs)
        except ValueError as error:
            if self.program is None:
                raise
            raise ValueError(f"{self.name}: the loaded trace does not take ({form_text(form)}): {error}") from None

    def code(self) -> str:
        """The example's graph as Python code."""
        gm = strata.fx.from_graph(self.graph)
        if self.graph.reads:
            output = gm.graph.output_node()
            output.args = (output.args[0][0],)  # without what guards read
            gm.graph.eliminate_dead_code()
            gm.recompile()
        return gm.code.lstrip("\n").rstrip(" ")


class _Unchanged:
    """A context behind which the buffers and other tensors that a function uses, and the generator, are as before."""

    def __init__(self, f: Any, name: str) -> None:
        self.name = name
        held = [value for _, value in held_by(f, [])]
        modules = [v for v in held if isinstance(v, strata.nn.Module)]
        self.tensors = {id(t): t for m in modules for t in m.buffers()} | {id(v): v for v in held if isinstance(v, strata.Tensor)}
        self.parameters = [(p, p._version) for m in modules for p in m.parameters() if not p.is_inference()]

    def __enter__(self) -> None:
        self.copies = [(t, t.detach().clone(), 0 if t.is_inference() else t._version) for t in self.tensors.values()]
        self.state = strata.get_rng_state()

    def __exit__(self, *exception: object) -> None:
        strata.set_rng_state(self.state)
        with strata.no_grad():
            for t, copy, version in self.copies:
                if (not t.is_inference() and t._version != version) or not strata.equal(t, copy):  # batch norm writes its statistics without a new version
                    t.copy_(copy)
        if any(p._version != version for p, version in self.parameters) and exception[0] is None:
            raise NotImplementedError(f"{self.name}: it writes its parameters, so that it cannot be traced anew for other inputs; trace it with those")


def _without_values(leaf: Any) -> Any:
    return leaf.detach().to("meta").requires_grad_(leaf.requires_grad) if isinstance(leaf, strata.Tensor) else leaf


def _copied(leaf: Any) -> Any:
    """A tensor in memory of its own, with the same strides."""
    if not isinstance(leaf, strata.Tensor):
        return leaf
    copy = leaf.detach().clone()
    if copy.stride() != leaf.stride():
        copy = copy.new_empty(0).set_(leaf.untyped_storage().clone(), leaf.storage_offset(), leaf.shape, leaf.stride())
    return copy.requires_grad_(leaf.requires_grad)


def form_of(args: tuple, kwargs: dict[str, Any]) -> tuple:
    """What a graph depends on of its arguments: nests, what tensors are like, and other values."""
    leaves, spec = tree_flatten((args, dict(sorted(kwargs.items()))))
    seen: dict[int, int] = {}
    facts = []
    for leaf in leaves:
        if isinstance(leaf, strata.Tensor):
            place = seen.setdefault(id(leaf), len(seen))  # one tensor twice is another function
            facts.append((place, tuple(leaf.shape), leaf.stride(), str(leaf.dtype), str(leaf.device), leaf.requires_grad))
        else:
            facts.append((type(leaf).__qualname__, repr(leaf)))
    return repr(spec), tuple(facts)


def form_text(form: tuple) -> str:
    """A form for messages: "float32[2, 3], 4"."""
    return ", ".join(f"{fact[3].rpartition('.')[2]}{list(fact[1])}" if len(fact) > 2 else fact[1] for fact in form[1])


# ---- checking a trace


def check(trace: Trace, inputs: tuple[tuple, dict], tolerance: float) -> None:
    """Runs the function and its trace once more on copies of the inputs, and warns where they differ or draw random numbers."""

    drawing = [node for node in trace.graph.nodes if _draws(node.op)]
    if drawing:
        nodes = "\n\t".join(map(repr, drawing))
        _warn(
            f"Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n\t{nodes}\nThis may cause errors in trace "
            "checking. To disable trace checking, pass check_trace=False to strata.jit.trace()"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        (args, kwargs), (again, keywords) = tree_map(_copied, inputs), tree_map(_copied, inputs)
        expected, _ = tree_flatten(trace.f(*args, **kwargs))
        got, _ = tree_flatten(trace(*again, **keywords))
    for i, (a, b) in enumerate(zip(got, expected)):
        if not isinstance(a, strata.Tensor):
            continue
        try:
            strata.testing.assert_close(a.double() if a.is_floating_point() else a, b.double() if b.is_floating_point() else b,
                                        rtol=tolerance, atol=tolerance, equal_nan=True)  # fmt: skip
        except AssertionError as error:
            _warn(f"Output nr {i + 1}. of the traced function does not match the corresponding output of the Python function. Detailed error:\n{error}")


def _draws(op: str) -> bool:
    if "::" not in op:
        return False
    info = _C._op_info(_C._op_get(op))
    return info is not None and "draws" in info[0]["acts"]


def _warn(text: str) -> None:
    frame = user_frame()
    where = (frame.f_code.co_filename, frame.f_lineno) if frame else ("<unknown>", 1)
    warnings.warn_explicit(text, TracerWarning, *where)
