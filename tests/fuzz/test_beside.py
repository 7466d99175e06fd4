"""The random programs of `./run fuzz-beside` are made by their number alone, and most of their steps do something."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "tools/beside/programs.py"


def told(kind: str) -> list:
    command = [sys.executable, "-W", "ignore", str(PROGRAMS), "strata", kind, "100", "60"]
    return [json.loads(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]


@pytest.mark.parametrize("kind", ["values", "writes", "indices", "modules", "derivatives", "autocast"])
def test_programs_are_the_same_each_time(kind):
    first = told(kind)
    assert [n for n, _ in first] == list(range(100, 160)) and told(kind) == first
    steps = [s for _, all_ in first for s in all_ if " of [" in s]
    assert sum("Error" in s for s in steps) < 0.5 * len(steps)
    assert not any("NameError" in s or "SyntaxError" in s for s in steps)


@pytest.mark.parametrize(("kind", "least"), [("calls", 24), ("optimisers", 54)])
def test_calls_and_optimisers_are_the_same_each_time(kind, least):
    first = told(kind)
    assert [n for n, _ in first] == list(range(100, 160)) and told(kind) == first
    assert sum(not any("Error" in s for s in all_) for _, all_ in first) >= least
    assert not any("NameError" in s or "SyntaxError" in s for _, all_ in first for s in all_)
