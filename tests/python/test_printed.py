"""Programs print under Strata what tools/record_programs.py recorded of them under PyTorch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {path.stem: path for folder in ("tests/python/printed", "examples/programs") for path in (ROOT / folder).glob("*.py")}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name, tmp_path):
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, str(PROGRAMS[name])]
    run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    wanted = (ROOT / "tests/data/printed" / f"{name}.txt").read_text().replace("torch", "strata")
    assert run.stdout == wanted
