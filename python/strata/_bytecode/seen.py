"""What was seen of the sizes and numbers that a place in a function reads: which differ from call to call, and so become symbols."""

from __future__ import annotations

import weakref

from strata._graph_form import same_constant

from . import values
from .reasons import Fixed, SizeViolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sources import Source

_VARIES = None


class Mark:
    """What mark_dynamic, maybe_mark_dynamic and mark_static say of a dim. kind: "dynamic", "maybe" or "static"."""

    __slots__ = ("high", "kind", "low")

    def __init__(self, kind: str, low: int | None = None, high: int | None = None):
        self.kind, self.low, self.high = kind, low, high


def marks_of(t: Any) -> dict[int, Mark]:
    own = getattr(t, "__dict__", None)
    return own.get("_strata_sizes", {}) if own else {}


def mark(t: Any, dims: Any, made: Mark) -> None:
    """IndexError for a dim that the tensor has not."""
    for dim in dims if isinstance(dims, (list, tuple, range)) else (dims,):
        if not -t.dim() <= dim < t.dim():
            raise IndexError(f"mark_{made.kind}: expected a dim in [{-t.dim()}, {t.dim() - 1}], got {dim}")
        t.__dict__.setdefault("_strata_sizes", {})[dim % t.dim()] = made


class Seen:
    """dynamic: None (at the second value), True (from the first call) or False (never), as strata.compile is told."""

    def __init__(self, dynamic: bool | None):
        self.dynamic = dynamic
        self.shapes: dict[tuple, list] = {}
        self.numbers: dict[tuple, Any] = {}
        self.objects: dict[tuple, weakref.ref | None] = {}  # modules and optimisers; None where it differs from call to call
        self.off = False  # for one capture that cannot have symbols

    def begin(self, symbols: bool) -> None:
        self.off = not symbols

    def clear(self) -> None:
        self.shapes.clear()
        self.numbers.clear()
        self.objects.clear()

    def stays(self, value: Any, source: Source) -> bool:
        """Whether an object is the one that was found there before."""
        at = source.identity()
        before = self.objects.setdefault(at, weakref.ref(value))
        if before is not None and before() is not value:
            self.objects[at] = before = None
        return before is not None

    def open_dims(self, t: Any, source: Source, recording: bool) -> list[int]:
        """The dims of a tensor that are symbols. Fixed where there are some and no program is recorded."""
        shape = tuple(t.shape)
        marks = marks_of(t)
        before = self.shapes.setdefault((*source.identity(), len(shape)), list(shape))
        for i, n in enumerate(shape):
            if before[i] is not _VARIES and before[i] != n:
                before[i] = _VARIES
        if self.off or self.dynamic is False:
            return []
        parameter = values.is_parameter(t)
        found = []
        for i, n in enumerate(shape):
            kind = marks[i].kind if i in marks else ""
            varies = not parameter and (self.dynamic or before[i] is _VARIES)
            if n < 2 and kind == "dynamic":
                raise SizeViolation(f"compile: {source!r}.size({i}) is marked as dynamic, and is {n}: sizes 0 and 1 are compiled for themselves")
            if n > 1 and kind != "static" and (varies or kind):
                found.append(i)
        if found and not recording:
            raise Fixed("", again=True)
        return found

    def open_number(self, value: float, source: Source, recording: bool) -> bool:
        """Whether an int or a float is a symbol. A float is one at its second value alone: most are settings."""
        at, kind = (*source.identity(), type(value)), type(value)
        before = self.numbers.setdefault(at, value)
        if before is not _VARIES and not same_constant(before, value):
            self.numbers[at] = _VARIES
        if self.off or self.dynamic is False:
            return False
        if kind is int and (value in (0, 1) or not -(1 << 62) < value < 1 << 62):
            return False
        if not ((self.dynamic and kind is int) or self.numbers[at] is _VARIES):
            return False
        if not recording:
            raise Fixed("", again=True)
        return True
