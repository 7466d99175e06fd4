"""Entries of a compiled function (guards, and a stretch that they guard), and tables of them."""

from __future__ import annotations

import weakref

from .forms import BOUND
from .frame import NATIVE, NULL, UNBOUND, Frame
from .instances import Family
from .seen import Seen
from .thread_state import capture_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from .entry import Compiled
    from .reasons import Break

everything: weakref.WeakValueDictionary[int, Compiled] = weakref.WeakValueDictionary()  # what is compiled, by id


def compiled() -> list[Compiled]:
    """All that is compiled. Other threads compile meanwhile: the references are copied in one step."""
    return [found for found in (reference() for reference in everything.valuerefs()) if found is not None]


class Entry:
    """Guards, and what to call where they hold. kind: "graph", or "native" where the place cannot be captured."""

    def __init__(self, kind: str, check: Callable, run: Callable | None, guards: Any):
        self.kind, self.check, self.run, self.guards = kind, check, run, guards
        self.direct: Callable | None = None  # what gives the same as run, of the values that the guards hand on
        self.text = ""
        self.region: Any = None
        self.regions: list[Any] = []  # all of its graphs, the last one's too
        self.graph: Any = None
        self.stops: Break | None = None
        self.family: Family | None = None  # where it is for many sizes
        self.reads_data, self.misfits = False, 0  # whether it reads values of tensors; how often these did not fit
        self.of_failing_sizes = False  # an operator raised for these alone

    def select(self, args: tuple) -> Any:
        """What to call; NATIVE where the function runs as it is, None where the entry is not for these arguments."""
        if self.family is None:
            return (self.run or NATIVE) if self.check(*args) else None
        key = self.check.key(args)
        if key is None:
            return None
        found = self.check.get(key)
        if found is NotImplemented:
            with capture_lock:
                found = self.check.get(key)
                if found is NotImplemented:
                    found = self.family.make(key, args, self.check.hits)
                    if found is True:
                        return NATIVE
                    self.check.put(key, found, BOUND)
        return found

    def why_not(self, args: tuple) -> str:
        """The condition that does not hold for these arguments."""
        failed = self.guards.failed(args)
        if failed:
            return failed
        if self.family is None:
            return getattr(getattr(self.run, "family", None), "misfit", "")
        return self.family.refusals.get(self.check.key(args), "") or self.family.misfit


class Table:
    """The entries of one place in a function: its start, or where a break left off.

    `bound` and `filled` say which locals and values of the stack have a value; these are the arguments of the entries.
    """

    def __init__(self, owner: Compiled, offset: int, bound: tuple[bool, ...], filled: tuple[bool, ...]):
        self.owner, self.offset, self.bound, self.filled = owner, offset, bound, filled
        self.entries: list[Entry] = []
        self.calls: list[tuple] = []  # of the same, guards and what to call (run and direct), for calls from C
        self.gave_up = self.asked = self.no_data = False  # no_data: reads of values of tensors break
        self.overflows = 0
        self.seen = Seen(owner.options.dynamic)

    def add(self, entry: Entry) -> None:
        """The newest is asked first; those of sizes that fail last, and of these the newest are kept."""
        at = 0
        if entry.of_failing_sizes:
            at = sum(not e.of_failing_sizes for e in self.entries)
            del self.entries[at + BOUND - 1 :], self.calls[at + BOUND - 1 :]
        self.entries.insert(at, entry)
        self.calls.insert(at, (entry.check, entry.run, entry.direct))

    def clear(self) -> None:
        self.entries.clear()
        self.calls.clear()
        self.seen.clear()
        self.gave_up = self.asked = self.no_data = False
        self.overflows = 0

    def forget_data(self, entries: list[Entry]) -> None:
        """Values of tensors differ too often from what these captured: they go, and reads break from now on."""
        self.no_data = True
        for i in reversed(range(len(self.entries))):
            if any(self.entries[i] is e for e in entries):
                del self.entries[i], self.calls[i]

    def find(self, args: tuple, tried: Collection[Entry] = ()) -> Any:
        """What to call, as an entry's select gives it, of those that were not tried."""
        for entry in list(self.entries):
            found = entry.select(args) if entry not in tried else None
            if found is not None:
                return found
        return None

    def frame(self, machine: Any, args: list) -> Frame:
        """The state that these arguments stand for."""
        owner = self.owner
        frame = Frame(machine, owner.code, owner.function.__globals__, owner.function)
        frame.closure = owner.function.__closure__ or ()
        values_ = iter(args)
        frame.locals = [next(values_) if has else UNBOUND for has in self.bound]
        frame.locals += [UNBOUND] * (len(frame.names) - len(frame.locals))
        frame.stack = [next(values_) if has else NULL for has in self.filled]
        frame.jump(self.offset)
        return frame
