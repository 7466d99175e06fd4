"""Values of tensors that a capture reads: numbers (`t.item()`), and results whose sizes are data (`nonzero`).

A number that is only handed on, or counted with, is read when the graphs have run (`late`). Where an operator or a comparison
asks for one, and where a size is data, the capture is cut: what was recorded becomes a graph, what reads runs between that one and
the next, and of what it gives numbers and sizes are symbols. A capture that finds out that it needs a cut, or another result
of a graph, begins anew; the plan keeps what it has found out.
"""

from __future__ import annotations

import operator

import strata
from strata import _C

from . import values
from .backends import callable_of, direct
from .forms import BETWEEN, CARRY, CUT, Method, modes
from .reasons import Asked, Break, Fixed, Replan
from .region import Region, root_of
from .sizes import Sym

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .program import Program

# Of these, numbers that are not read yet give one whose type is known and that raises nothing.
SURE = frozenset({operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs, abs, float})
READS = frozenset("item tolist __int__ __float__ __index__".split())
_NUMBERS = {"__int__": int, "__float__": float, "__index__": operator.index}


class Plan:
    """scalars, shapes: whether numbers, and sizes that are data, are captured. asked: which of the reads, by their order, cut the
    capture; refused: which break it, and why; outputs: of each part, the slots of its graph's results."""

    def __init__(self, options: Any, scalars: bool, shapes: bool):
        self.options, self.scalars, self.shapes = options, scalars, shapes
        self.asserts = True  # whether asserts of tensors are looked at when the graph has run
        self.asked: set[int] = set()
        self.refused: dict[int, str] = {}
        self.outputs: dict[int, list[int]] = {}

    def learn(self, asked: Asked) -> None:
        """After a capture that stopped because more was asked of reads than it was prepared for."""
        if asked.why or asked.reads <= self.asked:
            self.refused.update(dict.fromkeys(asked.reads, asked.why or "what is asked of it cannot be captured"))
        self.asked |= asked.reads
        self.outputs.clear()  # slots have other numbers


class Late:
    """A number that is read when the graphs have run. function: what gives it of args, or a method of the tensor args[0]."""

    def __init__(self, function: Any, args: tuple, reads: frozenset[int]):
        self.function, self.args, self.reads = function, args, reads


class Part:
    """What was recorded before a cut, and what runs there."""

    def __init__(self, inputs: list, region: Any, graph: Any, call: tuple):
        self.inputs, self.region, self.graph, self.call = inputs, region, graph, call
        self.shared: set[int] = set()  # slots of results that are views of another one, or of an input
        self.captured: list = []


def late_number(program: Program, function: Any, args: tuple, value: Any, reads: frozenset[int], text: str) -> Sym:
    slot = program.slot()
    program.late[slot] = Late(function, args, reads)
    return Sym(program, slot, value, text)


def lifted(program: Program, function: Callable, args: tuple) -> Any:
    """A function of numbers of which some are late."""
    reads = frozenset().union(*(program.late[v.slot].reads for v in args if type(v) is Sym and v.slot in program.late))
    if function not in SURE:
        raise Asked(reads)
    value = function(*(v.value if type(v) is Sym else v for v in args))
    return late_number(program, function, args, value, reads, program.text(function, args))


class Data:
    """Of the machine of captures."""

    def read_number(self, name: str, t: Any, way: Any = None) -> Any:
        """What item(), tolist(), int() or float() of a tensor gives. way: int or float, as functions."""
        plan, at = self.plan, self.reads
        self.reads += 1
        if not plan.scalars:
            raise self.unread(name, f"{_HINT}; strata._dynamo.config.capture_scalar_outputs = True captures it")
        if at in plan.refused:
            raise self.unread(name, plan.refused[at])
        if self.program is None:
            raise Fixed("", again=True)
        kind = float if t.is_floating_point() else int
        one = self.numel_of(t)
        single = one == 1 and t.dim() == 0 or name != "tolist"
        if t.is_complex() or (name != "tolist" and not self.truth(self.binary("eq", one, 1))):
            raise self.unread(name)
        if single and t.dtype is not strata.bool and at not in plan.asked:
            self.check_operand(t, name)
            way = way or _NUMBERS.get(name)
            found = way or kind
            if found is not int or kind is int:
                alone = self.call_operator(strata.Tensor.detach, (t,))
                copy = self.call_operator(strata.Tensor.clone, (alone,))  # which nobody writes
                return late_number(self.program, "item", (copy, way), found(2), frozenset({at}), f"u{at}")
        return self.cut(name, t.tolist if name == "tolist" else t.item, (), {}, at, way or _NUMBERS.get(name))

    def note_checks(self) -> None:
        """What this line has asked is given to one of strata's checks."""
        if self.program is not None:
            self.program.note_checks(self.line())

    def unread(self, name: str, hint: str = "") -> Break:
        return Break(f"{name}() reads a tensor's value", hint or _HINT)

    def run_between(self, name: str, function: Any, args: tuple, kwargs: dict, why: tuple[str, str]) -> Any:
        """What an operator gives that cannot be recorded, since values decide its result's size. why: the break's reason and hint."""
        at = self.reads
        self.reads += 1
        reason, hint = why
        if not self.plan.shapes:
            hint = f"{hint}; strata._dynamo.config.capture_dynamic_output_shape_ops = True captures it"
        if not self.plan.shapes or at in self.plan.refused or name.endswith("_") or name == "setitem" or kwargs.get("out") is not None:
            raise Break(reason, self.plan.refused.get(at, hint))
        if self.program is None:
            raise Fixed("", again=True)
        return self.cut(name, function, args, kwargs, at)

    def cut(self, name: str, function: Any, args: tuple, kwargs: dict, at: int, way: Any = None) -> Any:
        """Ends the graph so far, runs the function, and begins the next."""
        program, index = self.program, len(self.parts)
        if self.incomplete:
            raise Replan
        if way is not None:
            function, args = _as_number, (way, function.__self__)
        owner = getattr(function, "__self__", None)
        what = Method(program.form(owner), function.__name__) if values.is_tensor(owner) else function
        forms, keywords = program.form(args), program.form(kwargs)
        operands = list(_tensors((owner, args, kwargs)))
        for t in operands:
            self.check_operand(t, name)
            if self.region.made(t):
                self.output(index, t)
        if modes()[1:] != self.began[1:]:
            raise Break(f"{name}() within an autocast that begins here", "enter it around the call")
        part, real = self.end_part(index, name, at, (what, forms, keywords, modes()[0]))
        given = [real.get(id(t), t) for t in operands]
        try:
            found = self.library.call(*_replaced(function, args, kwargs, dict(zip(map(id, operands), given, strict=True))))
        except Exception as error:
            raise Break(f"{name} raised {type(error).__name__}: {error}") from None
        self.parts.append(part)
        grad = _C.is_grad_enabled()
        _C._set_grad_enabled(self.began[0])  # as it is when the recording ends
        self.region = Region()
        _C._set_grad_enabled(grad)
        program.steps.append((CUT,))
        first = program.count
        program.ends.append(first)
        form, seen = program.result(found, True, f"u{at}" if way or name in READS else name)
        program.steps.append((BETWEEN, form))
        program.data.update(dict.fromkeys(range(first, program.count), frozenset({at})))
        program.places_of(form, f"d{index}")
        for t in _tensors(found):
            self.real[id(t)] = t
        self.keep.append(found)
        return seen

    def end_part(self, index: int, name: str, at: int, call: tuple) -> tuple[Part, dict]:
        """The graph so far, run with the inputs of this call: nothing of that can be seen."""
        program, region = self.program, self.region
        outputs = [program.tensor_at(slot) for slot in self.plan.outputs.get(index, [])]
        inputs = list(region.inputs)
        shared = self.shared_of(inputs, outputs)
        captured = region.captured()
        graph = None
        if outputs or region.count():
            grad = _C.is_grad_enabled()
            _C._set_grad_enabled(self.began[0])
            try:
                region.end(outputs)
            finally:
                _C._set_grad_enabled(grad)
            self.check_pure(name)
            region.check(self)
            graph = callable_of(region, self.plan.options, inputs)
        region.stop()
        part = Part(inputs, region if graph is not None else None, graph, call)
        part.shared, part.captured = {program.slots[id(t)] for t in outputs if id(t) in shared}, captured
        if graph is not None:
            self.evaluate(direct(graph), inputs, outputs, name)
        return part, self.real

    def check_pure(self, name: str) -> None:
        """A graph may be run in vain, where what it gives fits none of what was captured: it writes nothing."""
        region = self.region
        if region._step or self.trained or self.grads_written or region._modes.slots or _C._graph_written(region._graph):
            raise Break(f"{name}() reads a tensor's value after others were written", _PURE_HINT)

    def evaluate(self, run: Callable, inputs: list, outputs: list, name: str) -> None:
        if any(self.made_before(t) is not None and id(t) not in self.real for t in inputs):
            raise Replan
        self.generator.set_state(self.random)
        try:
            found = run(*[self.real.get(id(t), t) for t in inputs])
        except Exception as error:
            raise Break(f"what {name}() reads could not be computed: {type(error).__name__}: {error}") from None
        now = self.generator.get_state()
        self.draws |= not strata.equal(now, self.random)
        self.random = now
        for t, r in zip(outputs, found, strict=True):
            self.real[id(t)] = r

    def shared_of(self, inputs: list, outputs: list) -> set[int]:
        roots = [root_of(t) for t in (*inputs, *outputs)]
        of = [id(root) for root in roots]
        return {id(t) for t, root in zip(outputs, of[len(inputs) :], strict=True) if of.count(root) > 1}

    def output(self, part: int, t: Any) -> int:
        """Which result of a part's graph a tensor is; it is planned to be one where it was not."""
        outputs, slot = self.plan.outputs.setdefault(part, []), self.program.slots.get(id(t))
        if slot is None:
            raise Break("a tensor that no operator of the program gave is used after a value was read")
        if slot not in outputs:
            outputs.append(slot)
            self.incomplete |= part < len(self.parts)
        return outputs.index(slot)

    def made_before(self, t: Any) -> int | None:
        """The part whose operators made a tensor; None for those from outside, and for what runs between graphs."""
        slot = self.program.slots.get(id(t)) if self.parts else None
        if slot is None or slot in self.program.found or id(t) in self.known or any(t is made for made, *_ in self.fresh_inputs):
            return None
        part = self.program.part_of(slot)
        return part if part < len(self.parts) else None

    def was_found(self, t: Any) -> bool:
        """Whether what runs between two graphs gives it."""
        return bool(self.parts) and self.program.slots.get(id(t)) in self.program.found

    def bring(self, t: Any) -> None:
        """Before an operator uses it: what was known before the last cut becomes an input of this part."""
        if not self.parts or _C._recording_known(self.region.recording, t):
            return
        slot = self.program.slots.get(id(t))
        if slot is None:
            return
        part = self.made_before(t)
        if part is not None:
            self.output(part, t)
        self.was_leaf.setdefault(id(t), t.is_leaf)
        name = self.program.names[slot]
        self.region.input(t, name)
        self.program.steps.append((CARRY, slot, name))

    def natively_known(self, t: Any) -> bool:
        """Whether native code of an earlier part used it."""
        return any(t is other for part in self.parts for other in part.captured)

    def refuse_reads(self, why: str) -> None:
        """All cuts become breaks."""
        raise Asked(frozenset().union(*self.program.data.values()) | self.plan.asked, why)

    def check_parts(self, outputs: list, shared: dict[int, Any]) -> None:
        """At the end: what the last part may not do with tensors of earlier ones."""
        if self.incomplete:
            raise Replan
        carried = {id(t) for t in self.region.inputs if self.made_before(t) is not None}
        if shared and any(id(root_of(t)) in shared and self.made_before(t) is not None for t in (*self.region.inputs, *outputs)):
            self.refuse_reads("views of tensors that were made before it are results")
        if not carried:
            return
        region = self.region
        alike = {slot for part in self.parts for slot in part.shared}
        if any(self.program.slots[id(t)] in alike for t in region.inputs if id(t) in carried) and self.writes_any():
            self.refuse_reads("a view is written that was made before it")

    def writes_any(self) -> bool:
        return bool(_C._graph_written(self.region._graph)) if getattr(self.region, "_graph", None) is not None else False


_HINT = "keep values in tensors (strata.where), or read them outside"
_PURE_HINT = "read it before anything is written, or outside of what is compiled"


def _as_number(way: Any, t: Any) -> Any:
    return way(t)


def _tensors(value: Any) -> Any:
    if values.is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _replaced(function: Any, args: tuple, kwargs: dict, real: dict[int, Any]) -> tuple:
    """A call with other tensors, and with numbers as they are."""
    from .sizes import concrete, remade

    def of(value: Any) -> Any:
        if values.is_tensor(value):
            return real[id(value)]
        if isinstance(value, (list, tuple)) and any(True for _ in _tensors(value)):
            return remade(value, [of(v) for v in value])
        return value

    owner = getattr(function, "__self__", None)
    if values.is_tensor(owner):
        function = getattr(real[id(owner)], function.__name__)
    return function, tuple(of(a) for a in concrete(args)), {k: of(v) for k, v in concrete(kwargs).items()}

