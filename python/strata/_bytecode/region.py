"""The graph of one captured stretch: operators are recorded over shapes as the stretch is executed."""

from __future__ import annotations

from strata import _C, _capture
from strata._capture import Numbers
from strata._graph import CompiledGraph, Graph
from strata._graph_form import Results

from .reasons import Break

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _TensorsAlone:
    """How a region is called: with its inputs, in order."""

    plain = True
    leaves: list = []
    tensors: list = []

    def __init__(self, count: int, names: list[str]):
        self.count, self.names = count, names

    @staticmethod
    def take(args: tuple, kwargs: dict) -> list:
        return list(args)

    def tensor_names(self) -> list[str]:
        return self.names


class Region(Graph):
    """Records from its making on. input() names tensors from outside; end() gives the graph of what led to some tensors."""

    def __init__(self) -> None:
        self.inputs: list = []
        self.names: list[str] = []
        self.recording = _C._recording_begin([], True)
        try:
            self.capture = _capture.begin(self.recording)
        except BaseException:  # of a signal's handler
            _C._recording_stop(self.recording)
            raise

    def stop(self) -> None:
        """Ends the recording; what autograd noted of tensors from outside is as it was."""
        _capture.end()
        _C._recording_stop(self.recording)

    def input(self, t: Any, name: str) -> bool:
        """Whether it is one now; not where operators know it already."""
        if _C._recording_known(self.recording, t):
            return False
        _C._recording_input(self.recording, t)
        self.inputs.append(t)
        self.names.append(name)
        return True

    def made(self, t: Any) -> bool:
        return _C._recording_made(self.recording, t)

    def count(self) -> int:
        return _C._recording_seen(self.recording)[0]

    def captured(self) -> list:
        """Tensors that operators used and that are no inputs: native code found them."""
        return _C._recording_seen(self.recording)[1]

    def end(self, outputs: list) -> Any:
        """The compiled graph; a call with the inputs gives a tuple of the outputs. Break where it cannot be one."""
        if _C._recording_histories(self.recording)[0]:
            raise Break(
                "a tensor from outside that takes part in autograd is written in place",
                "write to a copy of it (clone()), or write under no_grad()",
            )
        if not _C.is_grad_enabled() and any(t.requires_grad for t in outputs):
            raise Break("a result that requires a gradient, where gradients are off", "turn them on around the call, not inside")
        for t in outputs:
            if not _C._recording_known(self.recording, t):
                raise Break("a tensor that was made by no operator is a result")
            if t.is_leaf and t.requires_grad and self.made(t):
                raise Break("a result that requires a gradient of its own is made here", "make it outside of what is compiled")
        self._results = Results(tuple(outputs))
        self._arguments = _TensorsAlone(len(self.inputs), list(self.names))
        for t in self.captured():
            if not t.is_leaf:
                raise Break("native code reads a tensor that is the result of operators outside", "pass it as an argument")
        try:
            captured = self._end(list(self.inputs), self.recording, self.capture)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            raise Break(f"its graph cannot be made: {error}") from None
        if self._step and self._live:
            raise Break("a result has a gradient still to be asked for, beside a backward inside", "return it detach()ed, or run backward() outside")
        if self._tangent_of and not self._step and self._writes_learned():
            raise Break("a tensor that requires a gradient is written in place where a result has a gradient", "write to a copy of it (clone())")
        self._modes = Numbers(self.capture)
        tangents = [None] * len(self._tangent_of)
        _C._graph_name(self._graph, [*self.names, *tangents, *(f"captured {i}" for i in range(len(captured)))])
        self._results.tensors = []
        self.step = self._step
        made = _C._compiled(self._graph, self._nodes, self._count, self._tangent_of, self._wanted, self._step)
        self._compiled = made
        self.known_inputs, self.inputs = self.inputs, []
        return self

    def _writes_learned(self) -> bool:
        """Whether operators write an input that requires a gradient, or views of it: the compiled graph could not keep its history."""
        count, tangents = len(self.inputs), len(self._tangent_of)
        learned = {i if i < count else i + tangents for i in self._wanted}
        return not learned.isdisjoint(_C._graph_written(self._graph))

    def check(self, tracer: Any) -> None:
        """Guards of what a graph assumes beside its inputs: gradients that are there when it begins, its optimisers' numbers."""
        modes = self._modes
        known = [*self.known_inputs, *_C._graph_captured(self._graph)]
        for t in known:
            if t._backward_hooks and self._step:
                raise Break("a backward through a tensor with hooks")
        sources = {id(t): source for t, source in tracer.tensor_inputs}
        for i, place in self._grads_before:
            t, before = known[i], None if place is None else known[place]
            if (id(t), id(before)) in tracer.grads_read:
                continue
            if id(t) in sources:
                tracer.guards.add("is", sources[id(t)].attr("grad"), before)
            else:
                tracer.guards.add("call", None, lambda t=t, before=before: t.grad is before)
        for slot in modes.slots:
            if slot.name == "momentum":
                tracer.guards.add("call", None, lambda slot=slot: (slot.read() == 0) == (slot.first == 0))
        self.settle()

    def settle(self) -> None:
        """Lets go of what guards look after."""
        self.known_inputs = []
        self._modes.numbers = []  # the optimisers' dicts are watched


def compiled(region: Region, numerics: str) -> CompiledGraph:
    return CompiledGraph(region, numerics=numerics)


def root_of(t: Any) -> Any:
    """The tensor that it is a view of, or itself, as what an autograd.Function gave is, whose history is not its base's. Who
    compares roots by id() holds them: a base that nothing holds is another object each time."""
    return t._base if t._is_view() and not t._is_function_view() else t
