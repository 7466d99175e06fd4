"""What must hold for a captured stretch to be right for a call: a list of conditions on sources, compiled to one function."""

from __future__ import annotations

import functools
import time

import strata
from strata import _C
from strata._graph_form import same_constant

from .sources import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


_STATE = ("grad mode", "inference mode", "default dtype", "autocast", "default device", "anomaly mode")
global_state = _C._global_state  # what operators read of the thread and the process


def tensor_spec(t: Any, open_dims: Any = ()) -> tuple:
    """What must be so of a tensor. The sizes of open dims may be any but 0 and 1; strides are not compared then."""
    shape = tuple(None if i in open_dims else n for i, n in enumerate(t.shape))
    return (type(t), shape, t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf, t.is_inference())


def tensor_misfit(t: Any, spec: tuple) -> str:
    """How a tensor differs from what was captured, in PyTorch's words; empty where it does not."""
    if type(t) is not spec[0]:
        return f"expected type to be {spec[0].__name__}, but found {type(t).__name__}"
    with _C.DisableTorchFunctionSubclass():
        return _facts_misfit(t, spec)


def _facts_misfit(t: Any, spec: tuple) -> str:
    _, shape, stride, dtype, device, grad, leaf, inference = spec
    if t.dtype is not dtype:
        return f"dtype mismatch. expected {dtype}, actual {t.dtype}"
    if t.device != device:
        return f"device mismatch. expected {device}, actual {t.device}"
    if t.requires_grad != grad:
        return f"requires_grad mismatch. expected requires_grad={int(grad)}, actual requires_grad={int(t.requires_grad)}"
    if len(shape) != t.dim():
        return f"rank mismatch. expected {len(shape)}, actual {t.dim()}"
    if None in shape:
        for i, (a, b) in enumerate(zip(shape, t.shape, strict=True)):
            if a is None and b < 2:
                return f"size {b} at index {i} has an entry of its own"
        stride = t.stride()
    for what, then, now in (("size", shape, t.shape), ("stride", stride, t.stride())):
        for i, (a, b) in enumerate(zip(then, now, strict=True)):
            if a != b and a is not None:
                return f"{what} mismatch at index {i}. expected {a}, actual {b}"
    if t.is_leaf != leaf:
        return f"is_leaf mismatch. expected {leaf}, actual {t.is_leaf}"
    if t._backward_hooks:
        return "hooks were registered"
    return "" if t.is_inference() == inference else "inference mode mismatch"


ABSENT = object()  # what a class's attribute is where it has none


def class_lookup(kind: type, name: str, missing: Any = None) -> Any:
    """A class's attribute as it is kept, found as Python finds it."""
    for base in kind.__mro__:
        found = base.__dict__.get(name, missing)
        if found is not missing:
            return found
    return missing


def _same_list(now: Any, then: tuple) -> bool:
    return len(now) == len(then) and all(same_constant(a, b) for a, b in zip(now, then, strict=True))


class Watch:
    """Dicts and lists that native code reads: what they hold, by identity; numbers and strings by value."""

    def __init__(self) -> None:
        self.dicts: list[tuple[dict, list, frozenset]] = []
        self.lists: list[tuple[list, list]] = []
        self.tensors: list[tuple[Any, tuple]] = []
        self.classes: list[Any] = []
        self._seen: set[int] = set()

    def dict(self, d: dict, free: frozenset = frozenset()) -> None:
        """free: keys whose values are read anew by each call."""
        if id(d) not in self._seen:
            self._seen.add(id(d))
            self.dicts.append((d, list(d.items()), free))

    def tensor(self, t: Any) -> None:
        """What operators read of it but its numbers."""
        if t is not None and id(t) not in self._seen:
            self._seen.add(id(t))
            self.tensors.append((t, tensor_spec(t)))

    def list(self, values: list) -> None:
        if id(values) not in self._seen:
            self._seen.add(id(values))
            self.lists.append((values, list(values)))

    def same(self) -> bool:
        for d, items, free in self.dicts:
            if len(d) != len(items):
                return False
            for (k1, v1), (k2, v2) in zip(d.items(), items, strict=True):
                if (k1 is not k2 and not _same_plain(k1, k2)) or (v1 is not v2 and not _same_plain(v1, v2) and k1 not in free):
                    return False
        if any(tensor_misfit(t, spec) for t, spec in self.tensors):
            return False
        return all(len(now) == len(then) and all(a is b for a, b in zip(now, then, strict=True)) for now, then in self.lists)


def _same_plain(a: Any, b: Any) -> bool:
    return type(a) in (int, float, bool, str, tuple, type(None)) and same_constant(a, b)


_STEPS = {"arg": 0, "const": 1, "dict item": 2, "item": 3, "dict of": 4, "attr": 5, "grad": 6}
_CHECKS = {
    "is": 16, "type": 17, "equal": 18, "len": 19, "lacks": 20, "tensor": 21, "class": 22, "watch": 23, "state": 24, "same": 25,
    "distinct": 26, "ask": 27, "int": 28, "float": 29, "bare": 30, "keys": 31,
}  # fmt: skip


class Program:
    """Steps as _C._Guards reads them: (step, register that it sets, register that it reads or -1, object, number)."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, Any, int]] = []
        self._at: dict[tuple, int] = {}

    def register(self, source: Source) -> int:
        """Where a source's value lies, after the steps that find it."""
        identity = source.identity()
        if identity in self._at:
            return self._at[identity]
        if source.kind in ("arg", "const"):
            step, base, number = _STEPS[source.kind], -1, source.key if source.kind == "arg" else 0
        else:
            base, number = self.register(source.base), -1
            if source.kind == "attr":
                step = _STEPS[{"__dict__": "dict of", "grad": "grad"}.get(source.key, "attr")]
            else:
                if type(source.key) is int and source.key >= 0:
                    number = source.key
                of_dict = source.base.kind == "attr" and source.base.key == "__dict__"
                of_dict |= source.base.kind == "const" and isinstance(source.base.key, dict)
                of_dict |= source.kind == "raw dict"
                step = _STEPS["dict item" if of_dict and not _is_proxy(source.base) else "item"]
        at = self._at[identity] = len(self._at)
        self.steps.append((step, at, base, source.key, number))
        return at

    def check(self, guard: Guard) -> None:
        kind, expected, number = guard.kind, guard.expected, 0
        base = -1 if guard.source is None else self.register(guard.source)
        if kind == "len":
            number = expected
        elif kind == "same":
            number = self.register(expected)
        elif kind == "distinct":
            expected = tuple(self.register(s) for s in expected)
        elif kind == "class":
            expected = (expected.kind, expected.holds, expected.name)
        elif kind == "unset":
            kind, expected = "ask", functools.partial(_is_unset, expected)
        elif kind == "keys":
            expected = expected, functools.partial(_same_keys, expected)
        elif kind == "has_no_dict_key":
            kind, base = "lacks", self.register(guard.source.attr("__dict__"))
        elif kind == "call":
            kind = "ask"
        elif kind == "is" and expected is None:
            pass
        self.steps.append((_CHECKS[kind], 0, base, expected, number))


def _is_proxy(source: Source) -> bool:
    """The __dict__ of a class."""
    return source.base is not None and source.base.kind == "const" and isinstance(source.base.key, type)


def _is_unset(name: str, obj: Any) -> bool:
    """Whether a slot has no value."""
    try:
        class_lookup(type(obj), name).__get__(obj, type(obj))
    except AttributeError:
        return True
    return False


def _same_keys(then: tuple, now: Any) -> bool:
    return _same_list(list(now), then)


class Guard:
    __slots__ = ("expected", "hits", "kind", "source", "why")

    def __init__(self, kind: str, source: Source | None, expected: Any, why: str = ""):
        self.kind, self.source, self.expected, self.why, self.hits = kind, source, expected, why, 0

    def __repr__(self) -> str:
        shown = repr(self.expected)
        if self.kind == "int":
            return f"{self.source} int, not 0 or 1"
        if self.kind == "float":
            return f"{self.source} float"
        if self.kind == "distinct":
            shown = ", ".join(map(repr, self.expected))
        return f"{self.source or ''} {self.kind} {shown if len(shown) < 100 else shown[:97] + '...'}".strip()


class GuardList:
    """The conditions of one entry, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self._known: set[tuple] = set()

    def add(self, kind: str, source: Source | None, expected: Any) -> None:
        mark = (kind, source and source.identity(), id(expected) if kind not in ("len", "lacks") else expected)
        if mark in self._known:
            return
        self._known.add(mark)
        self.guards.append(Guard(kind, source, expected))

    def compile(self, count: int, handed: Sequence[Source] = ()) -> Callable[..., bool]:
        """The one function of the conditions, for calls of `count` arguments. handed: values that it hands on to what it guards."""
        program = Program()
        for guard in self.in_order():
            program.check(guard)
        registers = tuple(program.register(source) for source in handed)
        return _C._Guards(tuple(program.steps), count, same_constant, registers)

    def in_order(self) -> list[Guard]:
        return sorted(self.guards, key=lambda g: g.source is None and g.kind != "distinct")

    def layout(self) -> list[tuple]:
        """What the numbers of a call's key are: (a source's identity, its dim or -1); strides are (..., None)."""
        found: list[tuple] = []
        for guard in self.in_order():
            if guard.kind in ("int", "float"):
                found.append((guard.source.identity(), -1))
            elif guard.kind == "tensor" and None in guard.expected[1]:
                for dim, n in enumerate(guard.expected[1]):
                    if n is None:
                        found.append((guard.source.identity(), dim))
                    found.append((guard.source.identity(), None))
        return found

    def failed(self, args: tuple) -> str:
        """Which condition does not hold for these arguments, in words."""
        for guard in self.guards:
            if guard.kind == "state" and guard.expected == global_state():
                continue
            single = GuardList()
            single.guards = [guard]
            if guard.kind != "state" and single.compile(len(args))(*args):
                continue
            value = value_of(guard.source, args) if guard.source is not None else None
            if guard.kind == "tensor" and isinstance(value, strata.Tensor):
                return f"{guard.source}: {tensor_misfit(value, guard.expected)}"
            if guard.kind in ("int", "float"):
                return f"{guard.source}: expected {'an int other than 0 and 1' if guard.kind == 'int' else 'a float'}, actual {value!r}"
            if guard.kind == "equal":
                return f"{guard.source}: expected {guard.expected!r}, actual {value!r}"
            if guard.kind == "len":
                try:
                    return f"len({guard.source}): expected {guard.expected}, actual {len(value)}"
                except TypeError:
                    pass
            if guard.kind == "state":
                changed = [n for n, a, b in zip(_STATE, guard.expected, global_state(), strict=True) if a != b]
                return f"global state changed: {', '.join(changed)}"
            return f"guard failed: {guard!r}"
        return ""


def value_of(source: Source, args: tuple) -> Any:
    """What a source stands for in a call; None where it is not there."""
    try:
        if source.kind == "arg":
            return args[source.key]
        if source.kind == "const":
            return source.key
        base = value_of(source.base, args)
        if source.kind in ("raw dict", "raw list"):
            return (dict if source.kind == "raw dict" else list).__getitem__(base, source.key)
        return getattr(base, source.key) if source.kind == "attr" else base[source.key]
    except (KeyError, AttributeError, IndexError, TypeError):
        return None


class ClassAttribute:
    """A class's attribute as it was when it was read; ABSENT where there was none."""

    def __init__(self, kind: type, name: str, value: Any):
        self.kind, self.name, self.value = kind, name, value

    def holds(self) -> bool:
        return class_lookup(self.kind, self.name, ABSENT) is self.value

    def __repr__(self) -> str:
        return f"{self.kind.__name__}.{self.name}"


class ClassAttributes:
    """The same of several names, and of the classes that it derives from."""

    def __init__(self, kind: type):
        self.kind, self.name, self.found, self.order = kind, "__class__", {}, kind.__mro__

    def holds(self) -> bool:
        return self.kind.__mro__ == self.order and all(class_lookup(self.kind, name, ABSENT) is value for name, value in self.found.items())

    def __repr__(self) -> str:
        return f"{self.kind.__name__}'s {', '.join(self.found)}"


def guards_table(compiled: Any) -> str:
    """The guards of all entries: what each reads, what it expects, how often all held, and nanoseconds of its check where it
    can be asked alone (a dash where it needs the arguments of a call). Below them the entry's symbols, each with its range, and
    what else must be so of them, each with the line that asked; these are looked at once for each new tuple of sizes."""
    lines = [f"{'source':40} {'condition':48} {'hits':>8} {'ns':>7}"]
    for table in (compiled.start, *compiled.tables.values()):
        for e in table.entries:
            what = "runs as it is" if e.run is None else "graph"
            lines.append(f"-- {compiled.function.__qualname__} from offset {table.offset}: {what}")
            for guard in e.guards.guards:
                shown = repr(guard).removeprefix(str(guard.source or "")).strip()
                lines.append(f"{str(guard.source or ''):40} {shown[:48]:48} {e.check.hits:8} {_nanoseconds(guard):>7}")
            family = e.family or getattr(e.run, "family", None)
            if family is not None:
                lines += [f"   {part!r}" for part in (*family.symbols, *family.conditions)]
    return "\n".join(lines)


def _nanoseconds(guard: Any, rounds: int = 200) -> str:
    if _argument(guard.source) or guard.kind in ("distinct", "same"):
        return "-"
    single = GuardList()
    single.guards = [guard]
    check = single.compile(0)
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        check()
    return str((time.perf_counter_ns() - begin) // rounds)


def _argument(source: Any) -> bool:
    while source is not None and source.base is not None:
        source = source.base
    return source is not None and source.kind == "arg"
