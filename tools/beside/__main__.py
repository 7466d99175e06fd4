"""Random programs in Strata and in PyTorch, side by side: what differs in values, dtypes, shapes, contiguity, gradients, versions.

    STRATA_TORCH=python-with-torch ./run fuzz-beside --kind values --programs 3000

Programs are made by their number alone, so both interpreters run the same ones. What differs is grouped by the operator where a
program first differs, with one program of each group; some groups are no defects (`known` says which, and why).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# By a pattern of the step where a program first differs, of the whole program where that is a gradient or its end: seen, and left.
KNOWN = {
    r"\.nonzero\(|\.r?fft\(": "results are contiguous here, where PyTorch's keep the order of its library",
    r"\.(kthvalue|median|mode)\(": "PyTorch leaves it open which of equal elements is named; its median of an expanded tensor is wrong",
    r"\.(int|long|short)\(\)|\.to\(T\.u?int": "what NaN, infinities and numbers outside become is not defined",
    r"\.digamma\(": "PyTorch's derivative at a pole is a large number",
    r"(unbind|split|chunk)\(.*\.\w+_\(": "PyTorch refuses writes to one of several views",
    r"put_\(|apply_\(": "their versions: one write counts twice here, or none there",
    r"special_(chebyshev|hermite|laguerre|legendre|shifted)": "PyTorch's polynomials of NaN and infinities are 0, or what memory held",
    r"special_(modified_bessel|airy|i1)|\bi0\b": "PyTorch's are NaN at infinities, some gradients a number at NaN",
    r"remainder\.Scalar_Tensor|cdist": "PyTorch has no such derivative",
    r"fft_\w+ of": "infinities meet in another order; PyTorch takes no int for a list there",
    r"LBFGS of": "PyTorch's state holds its workspace, too",
}


def run(library: str, kind: str, first: int, count: int) -> dict[int, list[str]]:
    """What each program of one interpreter tells, by number."""
    python = os.environ.get("STRATA_TORCH") if library == "torch" else sys.executable
    if not python:
        raise SystemExit("fuzz-beside: STRATA_TORCH names no interpreter that has PyTorch 2.13")
    env = dict(os.environ)
    if library == "strata":
        env["PYTHONPATH"] = str(ROOT / "python")
    told: dict[int, list[str]] = {}
    at = first
    while at < first + count:
        command = [python, "-W", "ignore", str(HERE / "programs.py"), library, kind, str(at), str(first + count - at)]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        told |= dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        at = max([at - 1, *told]) + 1
        if at < first + count:
            print(f"{library} ended at program {at}:\n{done.stderr[-1500:]}")
            told[at] = ["ended"]
            at += 1
    return told


def first_difference(ours: list[str], theirs: list[str], left_out: str) -> int | None:
    pairs = enumerate(zip(ours, theirs, strict=False))
    found = next((i for i, (a, b) in pairs if a != b and re.sub(left_out, "", a) != re.sub(left_out, "", b)), None)
    return found if found is not None or len(ours) == len(theirs) else min(len(ours), len(theirs))


def is_known(steps: list[str], at: int) -> bool:
    late = at >= len(steps) or steps[at].startswith(("gradient", "at the end"))
    return any(re.search(p, " ".join(steps) if late else f"{steps[0]} {steps[at]}") for p in KNOWN)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run fuzz-beside", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("values", "writes", "indices", "modules", "calls", "derivatives", "optimisers", "autocast"), default="values",
                        help="operators and gradients, views and writes in place, indices, modules of nn, calls by the table's schemas, "
                             "second and third derivatives, optimisers with schedulers, or autocast")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--strides", action="store_true", help="tell where only contiguity differs, too")
    parser.add_argument("--errors", action="store_true", help="tell where only the classes of errors differ, too")
    parser.add_argument("--all", action="store_true", help="tell the known groups, too")
    given = parser.parse_args()
    theirs = run("torch", given.kind, given.first, given.programs)
    ours = run("strata", given.kind, given.first, given.programs)
    left_out = "|".join(p for p, asked in ((r" contiguous=\d", given.strides), (r"\w+Error$", given.errors)) if not asked) or r"\Z"
    known = 0
    groups: dict[tuple, list[tuple[int, int]]] = collections.defaultdict(list)
    for n in theirs:
        at = first_difference(ours.get(n, []), theirs[n], left_out)
        if at is None:
            continue
        if not given.all and is_known(theirs[n], at):
            known += 1
            continue
        both = [[*told.get(n, []), "nothing more"][at] for told in (theirs, ours)]
        step = both[0].split(": ")[0][:100]
        raised = tuple("Error" in line for line in both)
        name = theirs[n][0].split("(*")[0] + ", " if given.kind == "modules" else ""
        groups[name + step.split(" of ")[0], raised].append((n, at))
    same = len(theirs) - known - sum(map(len, groups.values()))
    for (step, _), found in sorted(groups.items(), key=lambda g: -len(g[1])):
        n, at = found[0]
        print(f"\n== {step}: {len(found)} programs, the first is {n}")
        for line in theirs[n][:at]:
            print("  ", line[:160])
        for library, told in (("PyTorch:", theirs), ("Strata: ", ours)):
            print("  ", library, [*told.get(n, []), "nothing more"][at][:300])
    print(f"\n{same} of {len(theirs)} programs the same, {known} different as known")
    return 0


if __name__ == "__main__":
    sys.exit(main())
