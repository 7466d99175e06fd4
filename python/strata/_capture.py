"""The capture of a graph that is under way on this thread, for those who must tell it what operators do not show."""

from __future__ import annotations

from _thread import _local  # threading.local, without the module's import

import strata
from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor


class Slot:
    """A number of an optimiser's group, which each call of the graph reads anew: a 0-dim tensor in its place."""

    def __init__(self, group: dict[str, Any], name: str):
        self.group, self.name = group, name
        self.key = "betas" if name in ("beta1", "beta2") else name  # what of the group it is read from
        self.at = None if self.key == name else int(name == "beta2")
        self.first = self.last = self.read()
        self.tensor = _C._recording_slot(self.first)

    def read(self) -> float:
        value = self.group[self.key]
        return float(value if self.at is None else value[self.at])


def state_of(optimizer: Any) -> dict[Tensor, dict[str, Any]]:
    """An optimiser's state as it is, for restore()."""
    return {p: dict(state) for p, state in optimizer.state.items()}


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """What an optimiser's groups hold."""
    return [dict(group) for group in optimizer.param_groups]


def restore(optimizer: Any, before: dict[Tensor, dict[str, Any]]) -> bool:
    """Puts the state back as it was. Whether anything was added or replaced."""
    changed = False
    for p in list(optimizer.state):
        state = optimizer.state[p]
        then = before.get(p, {})
        if len(state) != len(then) or any(then.get(key) is not value for key, value in state.items()):
            changed = True
            state.clear()
            state.update(then)
        if p not in before:
            del optimizer.state[p]
    return changed


class Capture:
    def __init__(self, recording: Any):
        self.recording = recording
        self.optimizers: dict[Any, dict] = {}  # with the state that each had before its first step
        self.groups: dict[Any, list[dict]] = {}  # as each had them then
        self.slots: dict[tuple[int, str], Slot] = {}
        self.asked: dict[str, tuple[Callable[[], bool], bool]] = {}  # modes that the program asked for, with what they were

    def note_step(self, optimizer: Any) -> None:
        """An optimiser steps."""
        if optimizer not in self.optimizers:
            self.optimizers[optimizer], self.groups[optimizer] = state_of(optimizer), groups_of(optimizer)

    def restore(self) -> list:
        """Takes what was made meanwhile out of optimisers' states. Gives the optimisers that had made some."""
        return [optimizer for optimizer, before in self.optimizers.items() if restore(optimizer, before)]

    def slot(self, group: dict[str, Any], name: str) -> Slot:
        found = self.slots.get((id(group), name))
        return found or self.slots.setdefault((id(group), name), Slot(group, name))

    def rate(self, group: dict[str, Any]) -> Tensor:
        """The learning rate, for operators that take it as a tensor."""
        return self.slot(group, "lr").tensor

    def call(self, operator: Callable, group: dict[str, Any], lists: tuple[list[Tensor], ...], options: dict[str, Any]) -> None:
        """An optimiser's operator, whose numbers become slots where they are the group's."""
        free = [
            name
            for name, value in options.items()
            if (name in group or (name in ("beta1", "beta2") and "betas" in group))
            and isinstance(value, (int, float))
            and not isinstance(value, bool)
        ]
        known = {name: self.slots.get((id(group), name)) or Slot(group, name) for name in free}
        _C._recording_bind(self.recording, {name: slot.tensor for name, slot in known.items()})
        try:
            operator(*lists, **options)
        finally:
            for name in _C._recording_unbind(self.recording):
                self.slots[id(group), name] = known[name]


_here = _local()


def current() -> Capture | None:
    return getattr(_here, "capture", None)


def begin(recording: Any) -> Capture:
    _here.capture = Capture(recording)
    return _here.capture


def end() -> None:
    _here.capture = None


def abandon() -> None:
    """Ends the capture that is under way, and its recording, wherever they are; nothing where there is none."""
    under_way, _here.capture = getattr(_here, "capture", None), None
    if under_way is not None:
        _C._recording_stop(under_way.recording)


class Numbers:
    """The numbers of optimisers that a capture used: slots, which calls read anew, and all others, which must stay."""

    def __init__(self, capture: Capture):
        self.slots = list(capture.slots.values())
        slotted = {(id(slot.group), slot.key) for slot in self.slots}
        self.numbers = [
            (optimizer, i, name, value)
            for optimizer in capture.optimizers
            for i, group in enumerate(optimizer.param_groups)
            for name, value in group.items()
            if name != "params" and not isinstance(value, strata.Tensor) and (id(group), name) not in slotted
        ]

    @property
    def any(self) -> bool:
        """Whether calls must ask at all."""
        return bool(self.slots or self.numbers)

    def check(self) -> None:
        for optimizer, i, name, value in self.numbers:
            now = optimizer.param_groups[i].get(name)
            if now is not value and now != value:
                raise RuntimeError(
                    f"graph: {type(optimizer).__name__}'s {name} was {value!r} when the graph was captured, and is {now!r}; "
                    "capture it again"
                )
        for slot in self.slots:
            value = slot.read()
            if value == slot.last:
                continue
            if slot.name == "momentum" and (value == 0) != (slot.first == 0):
                raise RuntimeError(
                    f"graph: momentum was {slot.first!r} when the graph was captured, and is {value!r}; a step with momentum is another "
                    "one than a step without: capture it again"
                )
            with strata.no_grad():
                slot.tensor.fill_(value)
            slot.last = value
