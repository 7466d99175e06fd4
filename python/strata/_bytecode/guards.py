"""What must hold for a captured stretch to be right for a call: a list of conditions on sources, compiled to one function."""

from __future__ import annotations

import strata
from strata import _C
from strata._graph_form import same_constant

from .sources import Source, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def global_state() -> tuple:
    """What operators read of the thread and the process."""
    return (
        _C.is_grad_enabled(),
        _C.is_inference_mode_enabled(),
        _C.get_default_dtype(),
        _C.is_autocast_enabled("cpu") and _C.get_autocast_dtype("cpu"),
        strata.get_default_device() if "strata._settings" in _loaded() else None,
        _C.is_anomaly_enabled(),
    )


def _loaded() -> dict:
    import sys

    return sys.modules


def tensor_spec(t: Any) -> tuple:
    return (type(t), tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf, t.is_inference())


def tensor_misfit(t: Any, spec: tuple) -> str:
    """How a tensor differs from what was captured, in PyTorch's words; empty where it does not."""
    kind, shape, stride, dtype, device, grad, leaf, inference = spec
    if type(t) is not kind:
        return f"expected type to be {kind.__name__}, but found {type(t).__name__}"
    if t.dtype is not dtype:
        return f"dtype mismatch. expected {dtype}, actual {t.dtype}"
    if t.device != device:
        return f"device mismatch. expected {device}, actual {t.device}"
    if t.requires_grad != grad:
        return f"requires_grad mismatch. expected requires_grad={int(grad)}, actual requires_grad={int(t.requires_grad)}"
    if len(shape) != t.dim():
        return f"rank mismatch. expected {len(shape)}, actual {t.dim()}"
    for what, then, now in (("size", shape, t.shape), ("stride", stride, t.stride())):
        for i, (a, b) in enumerate(zip(then, now, strict=True)):
            if a != b:
                return f"{what} mismatch at index {i}. expected {a}, actual {b}"
    if t.is_leaf != leaf:
        return f"is_leaf mismatch. expected {leaf}, actual {t.is_leaf}"
    return "" if t.is_inference() == inference else "inference mode mismatch"


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


# How a condition on a source reads in Python, with `{s}` for the source and `{k}` for what it is compared with.
_FORMS: dict[str, str] = {
    "is": "{s} is {k}",
    "type": "type({s}) is {k}",
    "equal": "same_constant({s}, {k})",
    "len": "len({s}) == {k}",
    "keys": "same_list(list({s}), {k})",
    "lacks": "{k} not in {s}",
    "has_no_dict_key": "{k} not in {s}.__dict__",
    "tensor": "not tensor_misfit({s}, {k})",
    "class": "class_lookup({k}.kind, {k}.name) is {k}.value",
    "watch": "{k}.same()",
    "state": "global_state() == {k}",
    "call": "{k}()",
    "same": "{s} is {k}",
    "distinct": "len(set(map(id, {k}))) == len({k})",
}
_NAMESPACE = {
    "same_constant": same_constant,
    "same_list": _same_list,
    "tensor_misfit": tensor_misfit,
    "class_lookup": class_lookup,
    "global_state": global_state,
}


class Guard:
    __slots__ = ("expected", "hits", "kind", "source", "why")

    def __init__(self, kind: str, source: Source | None, expected: Any, why: str = ""):
        self.kind, self.source, self.expected, self.why, self.hits = kind, source, expected, why, 0

    def __repr__(self) -> str:
        shown = repr(self.expected)
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

    def text(self, count: int, text: Text) -> list[str]:
        """The statements of a function of `count` arguments that returns whether all hold."""
        lines: list[str] = []
        for guard in self.guards:
            lines.append(f"if not ({self._condition(guard, text, lines)}): return False")
        return lines

    def _condition(self, guard: Guard, text: Text, lines: list[str]) -> str:
        source = text.of(guard.source, lines) if guard.source is not None else ""
        if guard.kind == "same":
            expected = text.of(guard.expected, lines)
        elif guard.kind == "distinct":
            expected = "(" + ", ".join(text.of(s, lines) for s in guard.expected) + ",)"
        elif guard.kind in ("equal", "lacks", "len", "has_no_dict_key"):
            expected = text.literal(guard.expected)
        else:
            expected = text.constant(guard.expected)
        return _FORMS[guard.kind].format(s=source, k=expected)

    def compile(self, count: int) -> tuple[Callable[..., bool], str]:
        text = Text()
        parameters = ", ".join(f"a{i}" for i in range(count))
        body = self.text(count, text) or ["pass"]
        lines = [f"def check({parameters}):", "    try:", *("        " + line for line in body), "        return True"]
        lines += ["    except (KeyError, AttributeError, IndexError, TypeError, ValueError):", "        return False"]
        whole = "\n".join(lines) + "\n"
        namespace = {**_NAMESPACE, **text.constants}
        exec(compile(whole, "<guards>", "exec"), namespace)
        return namespace["check"], whole

    def failed(self, args: tuple) -> str:
        """Which condition does not hold for these arguments, in words."""
        for guard in self.guards:
            single = GuardList()
            single.guards = [guard]
            check, _ = single.compile(len(args))
            if check(*args):
                continue
            value = value_of(guard.source, args) if guard.source is not None else None
            if guard.kind == "tensor" and isinstance(value, strata.Tensor):
                return f"{guard.source}: {tensor_misfit(value, guard.expected)}"
            if guard.kind == "equal":
                return f"{guard.source}: expected {guard.expected!r}, actual {value!r}"
            if guard.kind == "len":
                try:
                    return f"len({guard.source}): expected {guard.expected}, actual {len(value)}"
                except TypeError:
                    pass
            if guard.kind == "state":
                names = ("grad mode", "inference mode", "default dtype", "autocast", "default device", "anomaly mode")
                changed = [n for n, a, b in zip(names, guard.expected, global_state(), strict=True) if a != b]
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
        return getattr(base, source.key) if source.kind == "attr" else base[source.key]
    except (KeyError, AttributeError, IndexError, TypeError):
        return None
