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

    def put_back(self) -> str:
        """What was changed, in words; empty where nothing was."""
        return self._put_back_groups()

    def check(self) -> None:
        changed = self.put_back()
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
