"""What reads values of tensors on the host, for the recorder: operators that give them to their caller (`reads: value`) and
those whose result has a size that is data (`size: data`)."""

from __future__ import annotations

import re

from .emit import HEADER, Output
from .model import Entry

CONDITION = re.compile(r"data(?: if (?:(?P<none>\w+) is None|(?P<equal>\w+) == (?P<value>-?\d+)|mask in (?P<mask>\w+)))?$")


def rows(e: Entry) -> list[str]:
    """An entry's rows: operator, which of the two, and under which condition on an argument."""
    found = []
    for _, s in e.operators():
        if "value" in e.reads:
            found.append(f'{{"{s.full}", false, HostRead::Always, 0, 0}},')
        if e.row.size:
            m = CONDITION.match(e.row.size)
            if m is None:
                raise SystemExit(f"{e.source}: size is `data`, or `data if` one of `ARGUMENT is None`, `ARGUMENT == NUMBER`, "
                                 "`mask in ARGUMENT`")
            when = next((w for w in ("none", "equal", "mask") if m[w]), "always")
            names = [a.name for a in s.args]
            if when != "always" and m[when] not in names:
                raise SystemExit(f"{e.source}: size names {m[when]}, which is no argument")
            at = names.index(m[when]) if when != "always" else 0
            found.append(f'{{"{s.full}", true, HostRead::{when.capitalize()}, {at}, {m["value"] or 0}}},')
    return found


def write(entries: list[Entry], out: Output) -> None:
    lines = [row for e in entries for row in rows(e)]
    out.write("reads.cpp", HEADER + '#include "dispatch/host_reads.h"\n\nnamespace strata {\n\nconst HostRead host_reads[] = {\n  ' +
              "\n  ".join(lines) + "\n  {nullptr, false, HostRead::Always, 0, 0}};\n\n}  // namespace strata\n")
