"""An entry for many sizes: for those of a call, its program is done again over shapes, which gives a graph of exactly these sizes.

Kernels have their sizes at run time, so nothing is compiled then that was compiled before.
"""

from __future__ import annotations

import struct
import time
import types

import strata
from strata import _C
from strata._graph_form import same_constant

from .backends import callable_of, direct, single
from .guards import value_of
from .program import CONDITION, DO, FRESH, INPUT, LIFT, OPERATOR, Method, differs, facts, fill, modes
from .reasons import Break, logs, tell, warn
from .region import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .guards import GuardList
    from .library import Library
    from .program import Program

BOUND = 64  # instances of an entry that are kept, and refusals
PATIENCE = 32  # graphs of new numbers, beyond which most calls must have met one that was there


class Unfit(Exception):
    """An entry is not for the sizes of a call, and why."""


def roots(tensors: list) -> list[int]:
    """Which of them share a base, as numbers."""
    places: dict[int, int] = {}
    return [places.setdefault(id(t._base) if t._is_view() else id(t), len(places)) for t in tensors]


def begins(region: Region) -> tuple:
    """What a graph assumes when it begins: gradients, and tensors that are no inputs; numbers of optimisers are read anew."""
    slots = {id(slot.tensor): (id(slot.group), slot.name) for slot in region._modes.slots}
    return region._grads_before, region._step, [slots.get(id(t), id(t)) for t in _C._graph_captured(region._graph)]


class Family:
    """The instances of one entry. run_of(numbers, graph) makes the entry's function of what its text names."""

    def __init__(self, program: Program, guards: GuardList, native: bool, options: Any, name: str, library: Library):
        self.library = library
        self.symbols, self.conditions, self.name, self.options = program.symbols, program.conditions, name, options
        self.native = native
        self.count, self.wanted = program.count, program.wanted
        pure = [step for step in program.steps if self.is_pure(program, step)]
        self.pure = pure
        self.steps = [] if native else [s for s in program.steps if s[0] != CONDITION or not s[1].pure]
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
        self.outputs: list[int] = []
        self.roots: list[int] = []
        self.begins: Any = None
        self.code: Any = None
        self.constants: dict[str, Any] = {}
        self.single = False

    @staticmethod
    def is_pure(program: Program, step: tuple) -> bool:
        return (step[0] == LIFT and step[1] in program.pure) or (step[0] == CONDITION and step[1].pure)

    def finish(self, outputs: list[int], bases: list[int], region: Any, code: Any, constants: dict[str, Any], alone: bool) -> None:
        """outputs: the slots of what the graph gives; bases: roots of its inputs and outputs."""
        self.outputs, self.roots, self.code, self.constants, self.single = outputs, bases, code, constants, alone
        self.begins = region and begins(region)

    def function(self, env: list, graph: Any) -> Callable:
        numbers = {name: env[slot] for slot, name in self.wanted.items()}
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
                self.graphs[at] = graph, {slot: env[slot] for slot in self.wanted}
            else:
                self.graphs[at] = self.graphs.pop(at)  # the last used
            graph, numbers = self.graphs[at]
            made = self.function([numbers[i] if n is None and i in numbers else n for i, n in enumerate(env)], graph)
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
                raise Unfit(f"{condition!r}")
            return
        _, slot, function, forms = step
        try:
            env[slot] = function(*[fill(f, env) for f in forms])
        except Exception as error:
            raise Unfit(f"{getattr(function, '__name__', 'a function')} raised {type(error).__name__}: {error}") from None

    def replay(self, env: list, args: tuple) -> Any:
        """The graph of these sizes, None where there is none; sets what is not decided by symbols alone."""
        saved = *modes(), strata.get_rng_state()
        region = Region() if any(step[0] in (OPERATOR, INPUT, FRESH, DO) for step in self.steps) else None
        entered: list[Any] = []
        try:
            self.run(env, args, region, entered)
            outputs = [env[slot] for slot in self.outputs]
            if self.begins is None:
                return None
            if roots([*region.inputs, *outputs]) != self.roots:
                raise Unfit("other results are views of each other")
            try:
                region.end(outputs)
            except Break as why:
                raise Unfit(why.reason) from None
            if self.begins != begins(region):
                raise Unfit("its graph begins from other gradients, or uses other tensors")
            inputs = region.known_inputs
            region.settle()
            return callable_of(region, self.options, inputs)
        finally:
            for manager in reversed(entered):
                manager.__exit__(None, None, None)
            if region is not None:
                region.stop()
            _C._executed_frames(())
            _C._set_grad_enabled(saved[0])
            _C.set_autocast_enabled("cpu", saved[1])
            _C.set_autocast_dtype("cpu", saved[2])
            if not strata.equal(strata.get_rng_state(), saved[3]):
                strata.set_rng_state(saved[3])

    def run(self, env: list, args: tuple, region: Any, entered: list) -> None:
        known: set[int] = set()
        for step in self.steps:
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
    return struct.unpack("d", struct.pack("q", bits))[0]


# What steps of the kind DO call, with the managers that are entered.


def enter(entered: list, manager: Any) -> None:
    manager.__enter__()
    entered.append(manager)


def leave(entered: list, manager: Any) -> None:
    entered.remove(manager)
    manager.__exit__(None, None, None)


def backward(entered: list, args: tuple, kwargs: dict) -> None:
    strata.Tensor.backward(*args, **kwargs)


def clear_grad(entered: list, t: Any) -> None:
    t.grad = None


def step_optimizer(entered: list, optimizer: Any, function: Callable, args: tuple, kwargs: dict) -> None:
    from .training import restore

    before = {p: dict(state) for p, state in optimizer.state.items()}
    try:
        with strata.no_grad():
            function(*args, **kwargs)
    finally:
        changed = restore(optimizer, before)
    if changed:
        raise RuntimeError(f"{type(optimizer).__name__} makes its state at this step")

