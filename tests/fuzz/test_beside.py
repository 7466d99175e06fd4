"""The random programs of `./run fuzz-beside` are made by their number alone, and most of their steps do something."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "tools/beside/programs.py"


@pytest.mark.parametrize("kind", ["values", "writes", "indices", "modules"])
def test_programs_are_the_same_each_time(kind):
    def told() -> list:
        command = [sys.executable, "-W", "ignore", str(PROGRAMS), "strata", kind, "100", "60"]
        return [json.loads(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]

    first = told()
    assert [n for n, _ in first] == list(range(100, 160)) and told() == first
    steps = [s for _, all_ in first for s in all_ if " of [" in s]
    assert sum("Error" in s for s in steps) < 0.5 * len(steps)
    assert not any("NameError" in s or "SyntaxError" in s for s in steps)
