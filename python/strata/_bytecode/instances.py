"""An entry for many sizes: for those of a call, its program is done again over shapes, which gives a graph of exactly these sizes.

Kernels have their sizes at run time, so nothing is compiled then that was compiled before.
"""

from __future__ import annotations

import time
import types

import strata
from strata import _C, _capture
from strata._graph_form import same_constant

from .backends import callable_of, direct, single
from .forms import (
    BETWEEN,
    BOUND,
    CARRY,
    CONDITION,
    CUT,
    DO,
    FRESH,
    INPUT,
    LIFT,
    OPERATOR,
    Method,
    differs,
    facts,
    fill,
    modes,
)
from .guards import value_of
from .reasons import Break, Unfit, logs, tell, warn
from .region import Region, root_of
from .thread_state import ThreadState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .guards import GuardList
    from .library import Library
    from .program import Program

PATIENCE = 32  # graphs of new numbers, beyond which most calls must have met one that was there


def roots(tensors: list) -> list[int]:
    """Which of them share a base, as numbers."""
    of = [root_of(t) for t in tensors]
    places: dict[int, int] = {}
    return [places.setdefault(id(root), len(places)) for root in of]


def begins(region: Region) -> tuple:
    """What a graph assumes when it begins: gradients, and tensors that are no inputs; numbers of optimisers are read anew."""
    slots = {id(slot.tensor): (id(slot.group), slot.name) for slot in region._modes.slots}
    return region._grads_before, region._step, [slots.get(id(t), id(t)) for t in _C._graph_captured(region._graph)]


def stages_of(steps: list[tuple]) -> list[list[tuple]]:
    """Steps between cuts."""
    stages: list[list[tuple]] = [[]]
    for step in steps:
        stages.append([]) if step[0] == CUT else stages[-1].append(step)
    return stages


class Family:
    """The instances of one entry. run_of(numbers, graph) makes the entry's function of what its text names."""

    def __init__(self, program: Program, guards: GuardList, native: bool, options: Any, name: str, library: Library):
        self.library = library
        self.symbols, self.conditions, self.name, self.options = program.symbols, program.conditions, name, options
        self.native = native
        self.count, self.wanted = program.count, program.wanted
        pure = [step for step in program.steps if self.is_pure(program, step)]
        self.pure = pure
        steps = [] if native else [s for s in program.steps if s[0] != CONDITION or not s[1].pure]
        self.stages, self.between = stages_of(steps), [s[1] for s in steps if s[0] == BETWEEN]
        places = {(source, dim): slot for source, dim, slot in program.places}
        self.floats = {place[2] for symbol, place in zip(program.symbols, program.places, strict=True) if type(symbol.value) is float}
        self.layout = [places.get(place) for place in guards.layout()]
        # Graphs, by what they hang on: ints that are only compared, or handed on, are not among it.
        self.graphs: dict[tuple, tuple[Any, dict[int, Any]]] = {}
        self.geometry = [i for i, (_, dim) in enumerate(guards.layout()) if dim != -1]
        self.used = sorted(program.read_by_others())
        # Where operators get numbers that are no sizes, each new one is a graph of its own.
        numbers = {slot for _, dim, slot in program.places if dim < 0}
        self.of_numbers = bool(numbers) and not native
        self.replays, self.over = 0, False
        self.refusals: dict[tuple, str] = {}
        self.only: tuple | None = None  # the one key that it is for
        self.calls = self.makes = 0  # of graphs for numbers that were read
        self.checked = False  # whether the program raises then
        self.misfit = ""  # why values of tensors did not fit, the last time
        self.outs: list[list[int]] = []  # of each stage: the slots of its graph's results
        self.roots: list[int] = []  # of the last stage
        self.begins: list[Any] = []
        self.named: list[list[int]] = []  # of each stage: slots of numbers that it decides and the text names
        self.code: Any = None
        self.constants: dict[str, Any] = {}
        self.single = False

    @staticmethod
    def is_pure(program: Program, step: tuple) -> bool:
        return (step[0] == LIFT and step[1] in program.pure) or (step[0] == CONDITION and step[1].pure)

    def finish(self, outs: list[list[int]], bases: list[int], starts: list[Any], code: Any, constants: dict[str, Any], alone: bool) -> None:
        """Of each stage: the slots of what its graph gives, and what that begins from. bases: roots of inputs and outputs of the last."""
        self.outs, self.roots, self.code, self.constants, self.single = outs, bases, code, constants, alone
        self.begins = starts
        self.named = [[] for _ in self.stages]

    def function(self, env: list, graph: Any, following: Any = None) -> Callable:
        numbers = {name: env[slot] for slot, name in self.wanted.items()}
        if following is not None:
            numbers["part1"] = following
        if graph is None:
            return types.FunctionType(self.code, {**self.constants, **numbers, "graph": None})
        if self.single:
            made = single(graph)
            if made is not None:
                return made
        return types.FunctionType(self.code, {**self.constants, **numbers, "graph": direct(graph)})

    # ---- calls

    def make(self, key: tuple, args: tuple, calls: int) -> Any:
        """What to call for these sizes; None where the entry is not for them. True where the function runs as it is. calls: how
        many there were of this entry."""
        begin = time.perf_counter()
        try:
            if self.only is not None and self.only != key:
                raise Unfit("the entry is for the sizes alone with which an operator failed")
            env = self.numbers(key)
            if self.native:
                return True
            at = tuple(key[i] for i in self.geometry), tuple(n if type(n) is int else repr(n) for n in (env[slot] for slot in self.used))
            if at not in self.graphs:
                if self.given_up(calls):
                    return True
                self.replays += 1
                graph = self.replay(env, args)
                if len(self.graphs) >= BOUND:
                    self.graphs.pop(next(iter(self.graphs)))
                following = self.following(env)
                kept = {slot: env[slot] for slot in self.wanted} if following is None else dict(enumerate(following.env))
                self.graphs[at] = graph, kept
            else:
                self.graphs[at] = self.graphs.pop(at)  # the last used
            graph, numbers = self.graphs[at]
            env = [numbers[i] if n is None and i in numbers else n for i, n in enumerate(env)]
            made = self.function(env, graph, self.following(env))
        except Unfit as why:
            if len(self.refusals) > 4 * BOUND:
                self.refusals.pop(next(iter(self.refusals)))
            self.refusals[key] = str(why)
            if logs("sizes"):
                tell("sizes", f"{self.name}: not for {self.shown(key)}: {why}")
            return None
        if logs("sizes"):
            tell("sizes", f"{self.name}: {self.shown(key)} in {(time.perf_counter() - begin) * 1e3:.2f} ms")
        return made

    def given_up(self, calls: int) -> bool:
        """Whether numbers are so often new that graphs of them are not worth their making."""
        if self.of_numbers and not self.over and self.replays >= PATIENCE and 2 * self.replays > calls:
            self.over = True
            warn(
                f"strata.compile: {self.name} gets a number that is new at almost every call ({', '.join(map(str, self.symbols))}), and each "
                "takes a graph of its own: it runs as it is for new ones from now on. Pass a tensor instead"
            )
        return self.over

    def too_new(self) -> bool:
        """The same of numbers that are read of tensors."""
        self.makes += 1
        if not self.over and self.makes >= PATIENCE and 2 * self.makes > self.calls:
            self.over = True
            warn(
                f"strata.compile: {self.name} reads a number of a tensor that is new at almost every call, and each takes a graph of its own: "
                "reads break from now on. Keep it in a tensor instead"
            )
        return self.over

    def shown(self, key: tuple) -> str:
        names = {slot: s.name for s, slot in zip(self.symbols, sorted(i for i in self.layout if i is not None), strict=False)}
        pairs = [(slot, n) for slot, n in zip(self.layout, key, strict=True) if slot is not None]
        return ", ".join(f"{names.get(slot, '?')} = {_float_of(n) if slot in self.floats else n}" for slot, n in pairs)

    def numbers(self, key: tuple) -> list:
        """The environment, with what symbols alone decide. Unfit where a condition does not hold."""
        env: list[Any] = [None] * self.count
        for slot, number in zip(self.layout, key, strict=True):
            if slot is not None:
                env[slot] = _float_of(number) if slot in self.floats else number
        for step in self.pure:
            self.number(step, env)
        return env

    @staticmethod
    def number(step: tuple, env: list) -> None:
        if step[0] == CONDITION:
            condition = step[1]
            if not same_constant(env[condition.slot], condition.expected):  # 0.0 is not -0.0
                raise Unfit(f"{condition!r}", condition.check)
            return
        _, slot, function, forms, kind = step
        try:
            env[slot] = function(*[fill(f, env) for f in forms])
        except Exception as error:
            raise Unfit(f"{getattr(function, '__name__', 'a function')} raised {type(error).__name__}: {error}") from None
        if kind is not None and type(env[slot]) is not kind:
            raise Unfit(f"{getattr(function, '__name__', 'a function')} gives a {type(env[slot]).__name__}, where it gave a {kind.__name__}")

    def following(self, env: list) -> Any:
        """The stage behind the first one."""
        if len(self.stages) < 2:
            return None
        from .stages import after

        return after(self, 0, env)

    def replay(self, env: list, args: tuple, number: int = 0, known: set[int] | None = None) -> Any:
        """The graph of a stage for these sizes, None where there is none; sets what is not decided by symbols alone. known: ids of the
        tensors that lie in the environment already."""
        state = ThreadState()
        steps, entered = self.stages[number], []
        for step in [s for stage in self.stages[:number] for s in stage if s[0] == DO and s[1] in (enter, leave, set_grad_enabled)]:
            step[1](entered, *fill(step[2], env))
        region = None
        try:
            state.draw_apart()
            if any(step[0] in (OPERATOR, INPUT, FRESH, DO, CARRY) for step in steps):
                region = Region()
            self.run(steps, env, args, region, entered, known if known is not None else set())
            outputs = [env[slot] for slot in self.outs[number]]
            if self.begins[number] is None:
                return None
            last = number + 1 == len(self.stages)
            if last and roots([*self.own_inputs(region, env), *outputs]) != self.roots:
                raise Unfit("other results are views of each other")
            try:
                _C._set_grad_enabled(state.grad)
                region.end(outputs)
            except Break as why:
                raise Unfit(why.reason) from None
            if self.begins[number] != begins(region):
                raise Unfit("its graph begins from other gradients, or uses other tensors")
            inputs = region.known_inputs
            region.settle()
            return callable_of(region, self.options, inputs)
        finally:
            try:
                for manager in reversed(entered):
                    manager.__exit__(None, None, None)
            finally:
                state.restore(region)

    def own_inputs(self, region: Region, env: list) -> list:
        """Without those that earlier stages made."""
        earlier = {id(env[slot]) for slots in self.outs[:-1] for slot in slots}
        return [t for t in region.inputs if id(t) not in earlier]

    def run(self, steps: list[tuple], env: list, args: tuple, region: Any, entered: list, known: set[int]) -> None:
        for step in steps:
            kind = step[0]
            if kind == OPERATOR:
                _, function, forms, keywords, frames, result, now, name = step
                if modes() != now:
                    raise Unfit("other modes")
                if frames:
                    _C._executed_frames(frames)
                if type(function) is Method:
                    function = getattr(fill(function.owner, env), function.name)
                try:
                    found = self.library.call(function, fill(forms, env), fill(keywords, env))
                except Exception as error:
                    raise Unfit(f"{name} raised {type(error).__name__}: {error}") from None
                text = differs(result, found, env, known)
                if text:
                    raise Unfit(f"{name} gives {text}")
            elif kind in (LIFT, CONDITION):
                if kind == LIFT and env[step[1]] is not None:
                    continue  # it was computed of symbols alone
                self.number(step, env)
            elif kind == BETWEEN:
                pass  # its result was given
            elif kind == CARRY:
                region.input(env[step[1]], step[2])
            elif kind == INPUT:
                _, slot, source, name = step
                env[slot] = value_of(source, args)
                known.add(id(env[slot]))
                if not region.input(env[slot], name):
                    raise Unfit(f"{name} was used before")
            elif kind == FRESH:
                _, slot, function, forms, keywords, fact, shape = step
                try:
                    made = _C._unrecorded(function, fill(forms, env), fill(keywords, env))
                except Exception as error:
                    raise Unfit(f"{function.__name__} raised {type(error).__name__}: {error}") from None
                if facts(made) != fact or tuple(made.shape) != shape:
                    raise Unfit(f"{function.__name__} gives another kind of tensor")
                env[slot] = made
                known.add(id(made))
                region.input(made, f"{function.__name__}()")
            else:
                _, function, forms = step
                try:
                    self.library.call(function, (entered, *fill(forms, env)), {})
                except Exception as error:
                    raise Unfit(f"{type(error).__name__}: {error}") from None


def _float_of(bits: int) -> float:
    """A float in a key."""
    import struct

    return struct.unpack("d", struct.pack("q", bits))[0]


# What steps of the kind DO call, with the managers that are entered.


def enter(entered: list, manager: Any) -> None:
    manager.__enter__()
    entered.append(manager)


def leave(entered: list, manager: Any) -> None:
    entered.remove(manager)
    manager.__exit__(None, None, None)


def set_grad_enabled(entered: list, mode: bool) -> None:
    _C._set_grad_enabled(mode)


def backward(entered: list, args: tuple, kwargs: dict) -> None:
    strata.Tensor.backward(*args, **kwargs)


def clear_grad(entered: list, t: Any) -> None:
    t.grad = None


def step_optimizer(entered: list, optimizer: Any, function: Callable, args: tuple, kwargs: dict) -> None:
    before = _capture.state_of(optimizer)
    try:
        with strata.no_grad():
            function(*args, **kwargs)
    finally:
        changed = _capture.restore(optimizer, before)
    if changed:
        raise RuntimeError(f"{type(optimizer).__name__} makes its state at this step")

