"""Each way of `./run bench` that times our side prints its row: a measurement for each, whatever it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif("clang_rt" in os.environ.get("LD_PRELOAD", ""), reason="under a sanitizer nothing is timed")
@pytest.mark.parametrize("suite, name", [("overhead", "view"), ("cpu", "sum"), ("graphs", "adamw_10m"), ("ops", "argmax_channels")])
def test_a_row_is_printed(suite, name):
    env = {k: v for k, v in os.environ.items() if k != "STRATA_TORCH"}
    command = [sys.executable, str(ROOT / "bench/run.py"), suite, "--only", name, "--blocks", "1"]
    run = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    row = run.stdout.splitlines()[-1].split()
    assert row[0] == name and float(next(word for word in row[1:] if word[0].isdigit())) > 0
