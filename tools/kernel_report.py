"""Bytes and compile seconds of every table entry's kernels, over all dtypes and instruction sets.

Usage: kernel_report.py BUILD. Writes BUILD/kernels/report.tsv, the largest first, and prints its head and the totals.
Bytes are the sizes of the functions in the object files, without the helpers and constants that a family shares. Seconds
are what the compiler's time trace (-ftime-trace) says of each function; GCC writes none, then they are left out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SHOWN = 5
ENTRY = re.compile(r"^// ops/\S+: (\S+?)(?:, pass .*)?\n(?://.*\n)*void (\w+)\(", re.M)


def sizes(objects: list[Path]) -> Counter:
    out: Counter = Counter()
    run = subprocess.run(["nm", "-S", "--defined-only", *map(str, objects)], capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "Tt":
            out[fields[3]] += int(fields[1], 16)
    return out


def seconds(objects: list[Path]) -> Counter:
    """By function: optimising it and printing its code."""
    out: Counter = Counter()
    for path in objects:
        trace = path.with_suffix(".json")
        if not trace.exists():
            continue
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event.get("name") in ("PassManager<Function>", "OptFunction"):
                out[event["args"]["detail"]] += event["dur"] / 1e6
    return out


def main(build: Path) -> None:
    objects = sorted((build / "CMakeFiles/strata_kernels.dir/kernels").glob("*.c.o"))
    size, time = sizes(objects), seconds(objects)
    entries: dict[str, list] = {}
    for source in sorted((build / "kernels").glob("*.c")):
        for entry, function in ENTRY.findall(source.read_text()):
            row = entries.setdefault(entry, [0, 0.0, 0])
            row[0] += size[function]
            row[1] += time[function]
            row[2] += 1
    rows = sorted(entries.items(), key=lambda item: -item[1][0])
    report = build / "kernels/report.tsv"
    text = "entry\tbytes\tseconds\tfunctions\n"
    report.write_text(text + "".join(f"{e}\t{b}\t{s:.3f}\t{n}\n" for e, (b, s, n) in rows))
    total = f"{sum(r[0] for r in entries.values()) / 1e6:.1f} MB, {sum(r[1] for r in entries.values()):.0f} s"
    print(f"kernels of {len(entries)} entries: {total}; most: "
          + ", ".join(f"{e} {b / 1e3:.0f} kB {s:.1f} s" for e, (b, s, _) in rows[:SHOWN]) + f"; all: {report}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
