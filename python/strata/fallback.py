"""What ran on the CPU because a device lacks it, and what that cost.

An operator that a device has no way to run is run on copies of its operands on the CPU, and what it gives or writes goes
back. The first call of each operator warns; every call is in the ledger.
"""

from __future__ import annotations

from typing import NamedTuple

from strata import _C

__all__ = ["Row", "budget", "off", "on", "report", "reset", "rows"]


class Row(NamedTuple):
    """One operator on one device."""

    op: str
    device: str
    calls: int
    bytes: int  #: that were copied, both ways
    us: float  #: from the call until the results were on the device


def rows() -> list[Row]:
    """The ledger, the dearest operator first."""
    return [Row(*row) for row in _C._fallback_rows()]


def report() -> str:
    """The ledger as text: calls, bytes, microseconds, and the share of the whole that a kernel on the device would save."""
    found = rows()
    if not found:
        return "no operator fell back to the CPU"
    whole = sum(row.us for row in found) or 1.0
    lines = [f"{'operator':40} {'device':8} {'calls':>8} {'bytes':>14} {'us':>12} {'share':>6}"]
    lines += [
        f"{row.op:40} {row.device:8} {row.calls:8d} {row.bytes:14d} {row.us:12.1f} {row.us / whole:6.1%}" for row in found
    ]
    first = found[:3]
    names = ", ".join(row.op for row in first)
    lines.append(f"with kernels of {names} on the device {sum(r.us for r in first) / whole:.0%} of that time would go")
    return "\n".join(lines)


def reset() -> None:
    """Empties the ledger. Operators that have warned do not warn again."""
    _C._fallback_reset()


def on(failures: bool = False) -> bool:
    """Lets operators fall back, as they do at first (unless STRATA_FALLBACK=0); returns what was set.

    failures: also operators that the device has and fails at, such as by a kernel that does not compile or run. Each
    operator is then copied to the CPU before and waited for after, which takes its time.
    """
    if not isinstance(failures, bool):
        raise TypeError(f"fallback.on: failures: expected bool, got {type(failures).__name__}")
    _C._fallback_rescue(failures)
    return _C._fallback_set(True)


def off() -> bool:
    """Makes an operator that a device lacks raise NotImplementedError; returns what was set."""
    _C._fallback_rescue(False)
    return _C._fallback_set(False)


def budget(us: float | None) -> None:
    """At most so many microseconds of fallbacks from now on: the next one after that raises RuntimeError. None: any."""
    _C._fallback_budget(us)
