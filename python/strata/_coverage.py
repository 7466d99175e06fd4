"""How each operator of the table runs on a device: `strata.ops.coverage(device)`."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from strata import _C, ops
from strata._device_names import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORDS = {
    "kernels": "runs by kernels printed in its dialect",
    "view": "makes, sizes or views memory: no kernel",
    "composite": "is made of operators, which run as they do",
    "host": "gives the host a value, by a copy",
    "hidden": "could run, but the plugin does not offer it: the CPU, and back",
    "fallback": "the CPU, and back",
}


class Row(NamedTuple):
    """One operator."""

    op: str
    runs: str  #: one of WORDS
    why: str  #: of what falls back


class Coverage:
    """How the operators of the table run on a device; printed, counts and what falls back with the reason."""

    def __init__(self, device: str, rows: list[Row]) -> None:
        self.device, self._rows = device, rows

    def rows(self) -> list[Row]:
        """All operators, in the order of their definition."""
        return list(self._rows)

    def __repr__(self) -> str:
        count = Counter(r.runs for r in self._rows)
        lines = [f"{len(self._rows)} operators on {self.device}"]
        lines += [f"{count[runs]:6d}  {runs:9}  {words}" for runs, words in WORDS.items() if count[runs]]
        lines += [f"{r.op}: {r.runs}; {r.why}" for r in self._rows if r.runs in ("hidden", "fallback")]
        return "\n".join(lines)


def _calls(info: Any) -> list[str]:
    """Operators that a plan's text may call, by their names without overloads."""
    return re.findall(r"(\w+)\(", info.text) if info.kind == "plan" else []


def _untold(known: dict[str, Any]) -> dict[str, str]:
    """Operators whose launches are not the whole of them, and why."""
    why = {}
    for name, info in known.items():
        if info.kind == "cpu":
            why[name] = info.reason or "C++ computes it"
        elif info.size:
            why[name] = f"sizes of its results depend on values: {info.size}"
        elif {"inside", "value"} & set(info.reads.split()):
            why[name] = "it reads values on the way"
    # A plan that calls one of them is none either. Kernels of a plan's own have names that no operator has.
    overloads: dict[str, list[str]] = {}
    for name in known:
        overloads.setdefault(name.partition("::")[2].partition(".")[0], []).append(name)
    grown = True
    while grown:
        grown = False
        for name, info in known.items():
            for called in _calls(info) if name not in why else ():
                found = overloads.get(called, ())
                if found and all(full in why for full in found):
                    why[name] = f"it calls {called}: {why[found[0]]}"
                    grown = True
                    break
    return why


def of(device: str) -> Coverage:
    """Of the device of a plugin."""
    given = _C.device(device)
    there = place(given.type, given.index, "ops.coverage")
    known = {}
    for name in ops.names():
        found = _C._op_info(_C._op_get(name))
        if found is not None:
            known[name] = ops.OpInfo(*found)
    untold = _untold(known)
    rows = []
    for name, info in known.items():
        results = _C._parse_schema(info.schema)[4]
        why = ""
        if info.kind == "composite":
            runs = "composite"
        elif info.kind in ("view", "header", "allocate"):
            runs = "view"
        elif "value" in info.reads and not any("Tensor" in r[1] for r in results):
            runs = "host"
        elif name in untold:
            runs, why = "fallback", untold[name]
        elif not _C._device_offers(there, name):
            runs, why = "hidden", "the plugin's offers()"
        else:
            runs = "kernels"
        rows.append(Row(name, runs, why))
    return Coverage(there.type, rows)
