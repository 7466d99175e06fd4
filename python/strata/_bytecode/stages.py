"""What a function calls whose capture was cut at values of tensors (data.py): graph after graph, each for the numbers and sizes that
what runs before it gave; and where a call goes on for which none of them is."""

from __future__ import annotations

from strata import _C

from . import values
from .backends import direct
from .forms import BETWEEN, BOUND, FRESH, INPUT, LIFT, OPERATOR, differs, slots_in
from .frame import NATIVE, Jump
from .guards import value_of
from .reasons import Unfit, logs, tell
from .thread_state import capture_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .entries import Entry
    from .instances import Family


class Shape:
    """What is kept of a tensor for steps that ask for its geometry alone."""

    def __init__(self, t: Any):
        self.shape, self._rest = t.shape, (t.stride(), t.storage_offset())

    def stride(self) -> tuple:
        return self._rest[0]

    def storage_offset(self) -> int:
        return self._rest[1]


def key_of(found: Any) -> Any:
    """What the next graph hangs on."""
    if values.is_tensor(found):
        return tuple(found.shape), found.stride()
    if isinstance(found, (list, tuple)):
        return type(found), tuple(map(key_of, found))
    return type(found), repr(found)


def under(grad: bool, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """A call with gradients on or off."""
    before = _C.is_grad_enabled()
    _C._set_grad_enabled(grad)
    try:
        return function(*args, **kwargs)
    finally:
        _C._set_grad_enabled(before)


class Stage:
    """Called with a call's arguments, what it made of Python data, and what graphs and reads gave so far: (graph, next stage,
    numbers that the text names), or None where nothing captured fits."""

    def __init__(self, family: Family, number: int, env: list):
        self.family, self.number, self.env = family, number, env
        self.known: dict[Any, tuple] = {}

    def __call__(self, args: tuple, fresh: tuple, results: tuple, found: tuple) -> tuple | None:
        key, family = key_of(found[-1]), self.family
        family.calls += 1
        hit = self.known.get(key)
        if hit is None:
            if type(found[-1]) in (int, float) and family.too_new():
                return None
            with capture_lock:
                hit = self.known.get(key)
                if hit is None:
                    hit = self.make(args, fresh, results, found)
                    if len(self.known) >= BOUND:
                        self.known.pop(next(iter(self.known)))
                    self.known[key] = hit
        if len(hit) == 1:
            family.checked = hit[0]
            return None
        return hit

    def make(self, args: tuple, fresh: tuple, results: tuple, found: tuple) -> tuple:
        family, number = self.family, self.number
        env = list(self.env)
        try:
            known = place(family, env, number, args, fresh, results)
            for form, value in zip(family.between, found, strict=False):
                if text := differs(form, value, env, known):
                    raise Unfit(f"what was read is {text}")
            graph = family.replay(env, args, number, known)
            following = after(family, number, env)
            return direct(graph) if graph is not None else None, following, *(env[slot] for slot in family.named[number])
        except Unfit as why:
            family.misfit, family.checked = str(why), why.check
            if logs("sizes"):
                tell("sizes", f"{family.name}: not for {key_of(found[-1])}: {why}")
            return (why.check,)


def place(family: Family, env: list, number: int, args: tuple, fresh: tuple, results: tuple) -> set[int]:
    """Puts the tensors of this call that steps before a stage made, or read, into their slots. Gives their ids."""
    made = iter(fresh)
    for stage in family.stages[:number]:
        for step in stage:
            if step[0] == INPUT:
                env[step[1]] = value_of(step[2], args)
            elif step[0] == FRESH:
                env[step[1]] = next(made)
    for slots, tensors in zip(family.outs, results, strict=False):
        for slot, t in zip(slots, tensors, strict=True):
            env[slot] = t
    return {id(v) for v in env if values.is_tensor(v)}


def after(family: Family, number: int, env: list) -> Stage | None:
    """The stage behind that one, for what is known now."""
    if number + 1 >= len(family.stages):
        return None
    needed: set[int] = set()
    for stage in family.stages[number + 1 :]:
        for step in stage:
            if step[0] == LIFT:
                slots_in(step[3], needed)
            elif step[0] in (OPERATOR, FRESH, BETWEEN):
                for form in step[1:5]:
                    slots_in(form, needed)
    kept = [v if not values.is_tensor(v) else Shape(v) if i in needed else None for i, v in enumerate(env)]
    return Stage(family, number + 1, kept)


class Lone:
    """What an entry without symbols calls: made at the first call."""

    def __init__(self, family: Family, here: list):
        self.family, self.here, self.run = family, here, None

    def __call__(self, *args: Any) -> Any:
        if self.run is None:
            with capture_lock:
                if self.run is None:
                    self.run = self.family.make((), args, 0) or self.misfit
        return self.run(*args)

    def misfit(self, *args: Any) -> Any:
        return Jump(-1, list(args), [self.here, None])


def elsewhere(owner: Any, jump: Any) -> Any:
    """A call for which what an entry took values of tensors to be does not hold: by another entry, or as the function is."""
    tried: set[Entry] = set()
    while type(jump) is Jump and jump.offset < 0:
        here, random = jump.stack
        table, entry = here
        args = tuple(jump.locals)
        if random is not None:
            _C._rewind_draws(random)
        entry.misfits += 1
        tried.add(entry)
        if entry.run.family.over:
            table.forget_data([entry])
        run = NATIVE if entry.run.family.checked else table.find(args, tried) or owner.miss(table, args, tried)
        if run is None or run is NATIVE:
            if table is owner.start:
                return bound_call(owner.function, args)
            return owner.finish(table.frame(owner.plain, list(args)))
        jump = run(*args)
    return owner.go_on(jump) if type(jump) is Jump else jump


def bound_call(function: Any, args: tuple) -> Any:
    """A call with the values of parameters, in the order of co_varnames."""
    code = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[count : count + only]
    keywords = dict(zip(names, args[count : count + only], strict=True))
    rest = list(args[count + only :])
    more = rest.pop(0) if code.co_flags & 4 else ()
    keywords.update(rest.pop(0) if code.co_flags & 8 else {})
    return function(*args[:count], *more, **keywords)

