"""Grades a device's plugin: `strata backend-test libmine.so`, in a clone also `./run backend-test libmine.so`.

Level 0 is memory and copies, 1 pointwise operators, 2 all operators, 3 gradients, 4 compiled graphs and training, 5 errors,
threads and whether the plugin hides operators; docs/add-a-device.md says what each asks for. Every call is compared with the
CPU's, bit for bit. Levels from 1 on take the samples of a clone of Strata.
"""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """0 where no row fails, 1 where one does, 2 where there is nothing to grade."""
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
    options = parser.parse_args(arguments)

    from strata.testing._device.grade import grade

    try:
        report = grade(
            options.plugin,
            options.level,
            options.sample,
            options.seed,
            options.dtypes,
            options.only,
            options.clone,
        )
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
