"""Why a capture stopped: breaks, what cannot be captured, and how that is told."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Break(Exception):
    """An operation that cannot be captured: it runs as it is, and what follows is captured anew.

    reason: what it is. hint: what to write instead, if anything. place: where, as decode.place tells it. while_: a function that
    says whether the reason still holds.
    """

    def __init__(self, reason: str, hint: str = "", while_: Any = None):
        super().__init__(reason)
        self.reason, self.hint, self.place, self.while_ = reason, hint, "", while_

    def text(self) -> str:
        parts = [f"Graph break: {self.reason}"]
        if self.hint:
            parts.append(f"  Hint: {self.hint}")
        if self.place:
            parts.append("  " + self.place.replace("\n", "\n  "))
        return "\n".join(parts)


class Restart(Exception):
    """A capture begins again, to end before the step of that number."""

    def __init__(self, step: int, why: Break):
        super().__init__(step)
        self.step, self.why = step, why


class Unsupported(RuntimeError):
    """What strata.compile(fullgraph=True) raises where a function is not one graph."""


def logs(kind: str) -> bool:
    """Whether STRATA_LOGS, or set_logs, asks for that kind."""
    return kind in _asked()


_set: set[str] | None = None


def _asked() -> set[str]:
    global _set
    if _set is None:
        import os

        _set = {word.strip() for word in os.environ.get("STRATA_LOGS", "").split(",")}
    return _set


def tell(kind: str, text: Any) -> None:
    """Writes a line of a log on stderr, where it is asked for."""
    if kind in _asked():
        import sys

        for line in str(text).splitlines():
            print(f"[{kind}] {line}", file=sys.stderr)
