"""Grades a device's plugin: `strata backend-test libmine.so`, in a clone also `./run backend-test libmine.so`.

Level 0 is memory and copies, 1 pointwise operators, 2 all operators, 3 gradients, 4 compiled graphs and training, 5 errors,
threads and whether the plugin hides operators; docs/add-a-device.md says what each asks for. Every call is compared with the
CPU's, bit for bit. Levels from 1 on take the samples of a clone of Strata.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from strata.testing._device.report import Report


# A process can map so many pieces of memory (vm.max_map_count), and a platform may map a library for each kernel: all operators and all
# gradients are graded by several processes.
PARTS = {2: 3, 3: 3}


def apart(level: int, arguments: list[str], whole_table: bool) -> Report | None:
    """Each level graded by processes of its own: what kernels of one have loaded is not in the others' way, and one that ends costs
    a row. None where a process had nothing to grade, which it has said."""
    from strata.testing._device.report import Report, Row

    started, whole = time.monotonic(), None
    with tempfile.TemporaryDirectory(prefix="strata-grade") as folder:
        counts = {number: PARTS.get(number, 1) if whole_table else 1 for number in range(level + 1)}
        for number, part_of, count in [(n, i + 1, c) for n, c in counts.items() for i in range(c)]:
            file = Path(folder) / f"{number}-{part_of}.json"
            words = [*arguments, "--first", str(number), "--level", str(number), "--part", f"{part_of}/{count}", "--json", str(file)]
            ended = subprocess.run([sys.executable, "-m", "strata.backend_test", *words], stdout=subprocess.DEVNULL)
            if file.exists():
                found = json.loads(file.read_text(encoding="utf-8"))
                rows = [Row(**row) for row in found.pop("rows")]
                part = Report(**{name: found[name] for name in ("plugin", "device", "version", "sample", "note")}, wanted=level, seconds=0, rows=rows)
            elif whole is None:
                return None
            else:
                why = f"the process ended with {ended.returncode} before its rows did"
                row = Row(number, f"part {part_of} of {count} of the level", "", "", "failed", why)
                part = Report(whole.plugin, whole.device, whole.version, level, whole.sample, 0, [row])
            if whole is None:
                whole = part
            else:
                whole.rows += part.rows
                whole.note = whole.note or part.note
    assert whole is not None
    whole.seconds = time.monotonic() - started
    return whole


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"expected I/N with 1 <= I <= N, such as 2/3, but got {text!r}")
    return int(number), int(count)


def main(arguments: list[str] | None = None) -> int:
    """0 where no row fails, 1 where one does, 2 where there is nothing to grade. Of a command line, levels have processes of their own."""
    parser = argparse.ArgumentParser(
        prog="strata backend-test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plugin", help="the shared object")
    parser.add_argument("--level", type=int, default=5, choices=range(6), help="the highest level to grade (5)")
    parser.add_argument("--sample", type=int, metavar="N", help="N operators a level instead of all")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--dtypes", nargs="+", help="some dtypes instead of all nine")
    parser.add_argument("--only", default="", metavar="TEXT", help="operators whose name has it")
    parser.add_argument("--clone", metavar="DIR", help="the clone whose samples are used")
    parser.add_argument("--html", metavar="FILE", help="writes a page, operators by dtype")
    parser.add_argument("--json", metavar="FILE", help="writes all rows")
    parser.add_argument("--first", type=int, choices=range(6), metavar="L", help="the lowest level to grade; all in this process")
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="I/N", help="the I-th of N equal parts of each level's rows (1/1)")
    options = parser.parse_args(arguments)

    from strata.testing._device.grade import grade

    try:
        if arguments is None and options.first is None and options.part == (1, 1) and options.level > 0:
            words = [options.plugin, "--seed", str(options.seed), "--only", options.only]
            words += ["--sample", str(options.sample)] if options.sample else []
            words += ["--clone", options.clone] if options.clone else []
            words += ["--dtypes", *options.dtypes] if options.dtypes else []
            graded = apart(options.level, words, options.sample is None and not options.only)
            if graded is None:
                return 2
            report = graded
        else:
            settings = (options.level, options.sample, options.seed, options.dtypes, options.only, options.clone)
            report = grade(options.plugin, *settings, first=options.first or 0, part=options.part)
    except (RuntimeError, ImportError) as error:
        print(f"backend-test: {error}", file=sys.stderr)
        return 2
    print(report.text())
    for file, made in ((options.html, report.html), (options.json, report.json)):
        if file:
            with open(file, "w", encoding="utf-8") as out:
                out.write(made())
    return 1 if report.failed else 2 if report.note else 0


if __name__ == "__main__":
    sys.exit(main())
