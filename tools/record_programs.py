"""Records what programs print under PyTorch, for the tests that run them under Strata.

Run it with a Python that has PyTorch: python tools/record_programs.py [name...]. The programs, tests/python/printed/*.py
and examples/programs/*.py, import strata; here their imports say torch. Texts go to tests/data/printed/<name>.txt.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("tests/python/printed", "examples/programs")


def for_torch(text: str) -> str:
    """The program with torch for strata."""
    text = text.replace("import strata as torch", "import torch")
    return re.sub(r"\bstrata\b", "torch", text)


def main() -> None:
    wanted = sys.argv[1:]
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.py")):
        if wanted and path.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / path.name
            program.write_text(for_torch(path.read_text()))
            env = {**os.environ, "OMP_NUM_THREADS": "1"}
            run = subprocess.run([sys.executable, str(program)], cwd=folder, env=env, capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{path.stem} failed:\n{run.stderr}", file=sys.stderr)
            continue
        (ROOT / "tests/data/printed" / f"{path.stem}.txt").write_text(run.stdout)
        print(f"{path.stem}: {len(run.stdout)} characters")


if __name__ == "__main__":
    main()
