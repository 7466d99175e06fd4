"""Instructions per small call, counted by callgrind: they compare exactly where times are noisy.

From C++ by the worker of bench/cpp, from Python by the workloads of worker.py. Kernels run their AVX2 text, since callgrind
knows no AVX-512.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "results/instructions.json"
CPP = ("add", "add_grad", "view", "empty")
PYTHON = ("add", "add_grad", "view", "empty", "linear_4x4")
# By the first the libraries that a thread opens ahead of need are there. Some runs read what memory is mapped, half a million
# instructions, and others do not: so many calls are counted that this is no more than 25 of each, and where that would decide,
# the least of three runs counts.
FEW, MANY = 2200, 26200
TOLERANCE = 1.03  # a call that needs more than this share of its baseline has got slower


def count(command: list[str]) -> int:
    """Instructions that a whole run of `command` executes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        env = dict(os.environ, STRATA_CPU="v3", OMP_NUM_THREADS="1", PYTHONHASHSEED="0")
        run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command], env=env, capture_output=True,
                             text=True)
        if run.returncode != 0:
            raise SystemExit(f"valgrind failed:\n{run.stderr[-2000:]}")
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M).group(1))


def per_call(command: list[str], runs: int = 1) -> int:
    few, many = (min(count([*command, str(n)]) for _ in range(runs)) for n in (FEW, MANY))
    return round((many - few) / (MANY - FEW))


def main(program: Path, save: bool) -> int:
    commands = {f"cpp {n}": [str(program), n] for n in CPP}
    commands |= {f"python {n}": [sys.executable, str(HERE / "worker.py"), "strata", n] for n in PYTHON}
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    worse = 0
    print(f"{'call':<20}{'instructions':>14}{'baseline':>10}")
    counts: dict[str, int] = {}
    for name, command in commands.items():
        old, n = known.get(name), per_call(command)
        if old is not None and n > old * TOLERANCE:
            n = per_call(command, 3)
        counts[name] = n
        slower = old is not None and n > old * TOLERANCE
        worse += slower
        print(f"{name:<20}{n:>14}{old if old is not None else '-':>10}{'  MORE' if slower else ''}")
    if save:
        BASELINE.parent.mkdir(exist_ok=True)
        BASELINE.write_text(json.dumps(counts, indent=1) + "\n")
    return 1 if worse and not save else 0
