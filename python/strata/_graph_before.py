"""What a function changes beside tensors' values while it is captured: a call of the graph would not, so that it is refused.

What it changed is put back before the error, and also where the function itself raises.
"""

from __future__ import annotations

import sys

import strata
from strata import _capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_NEW = 624  # the place of a generator that nobody has drawn from


def _draws() -> dict[str, Any]:
    """The states of generators that are not strata's, the place of the next word first."""
    found = {}
    if "random" in sys.modules:
        version, words, gauss = sys.modules["random"].getstate()
        found["random"] = (words[-1], words[:-1], version, gauss)
    if "numpy.random" in sys.modules:
        kind, words, *rest = sys.modules["numpy.random"].get_state()
        found["numpy.random"] = (rest[0], words.tobytes(), kind, *rest[1:])
    return found


class Before:
    """How it was before the function ran."""

    def __init__(self, held: list[tuple[str, Any]], capture: _capture.Capture):
        self.capture = capture
        self.groups, self.schedules = {}, []
        if "strata.optim" in sys.modules:
            kind = strata.optim.Optimizer
            for _, value in held:
                owner = value if isinstance(value, kind) else getattr(value, "__dict__", {}).get("optimizer")
                if isinstance(owner, kind):
                    self.groups[owner] = _capture.groups_of(owner)
                    if owner is not value:
                        self.schedules.append((value, dict(value.__dict__)))

        self.draws = _draws()

    def put_back(self) -> str:
        """What was changed, in words; empty where nothing was."""
        return self._put_back_groups()

    def check(self) -> None:
        changed = self.put_back() or self._drawn()
        if changed:
            raise RuntimeError(f"graph: {changed}")

    def _put_back_groups(self) -> str:
        changed = ""
        for optimizer, before in {**self.capture.groups, **self.groups}.items():
            for i, (group, then) in enumerate(zip(optimizer.param_groups, before)):
                for name in {**then, **group}:
                    a, b = then.get(name), group.get(name)
                    if a is b or (not isinstance(a, strata.Tensor) and not isinstance(b, strata.Tensor) and a == b):
                        continue
                    changed = changed or (
                        f"{type(optimizer).__name__}.param_groups[{i}][{name!r}] is {a!r} before and {b!r} behind the function, and calls of the "
                        "graph would not change it; call the scheduler, or what else changes it, outside of what is captured: each call reads "
                        "the numbers anew"
                    )
                if changed:
                    group.clear()
                    group.update(then)
        if changed:
            for schedule, then in self.schedules:
                schedule.__dict__.clear()
                schedule.__dict__.update(then)
        return changed

    def _drawn(self) -> str:
        """That stays as it is: numbers were drawn."""
        for name, now in _draws().items():
            if now != self.draws[name] if name in self.draws else now[0] != _NEW:
                return (
                    f"the function draws from {name}, whose number would be the same in all calls; draw with strata (strata.rand(()), "
                    "strata.randint), or give the number as a tensor argument"
                )
        return ""
