"""The capture of a graph that is under way on this thread, for those who must tell it what operators do not show."""

from __future__ import annotations

import threading

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata import Tensor


class Capture:
    def __init__(self) -> None:
        self.optimizers: list = []
        self.rates: list[tuple[dict[str, Any], Tensor]] = []  # groups, and what their learning rates were captured as

    def rate(self, group: dict[str, Any]) -> Tensor:
        """A 0-dim tensor in the place of a learning rate, which each call of the graph fills anew."""
        for known, slot in self.rates:
            if known is group:
                return slot
        slot = _C._recording_slot(float(group["lr"]))
        self.rates.append((group, slot))
        return slot


_here = threading.local()


def current() -> Capture | None:
    return getattr(_here, "capture", None)


def begin() -> Capture:
    _here.capture = Capture()
    return _here.capture


def end() -> None:
    _here.capture = None
