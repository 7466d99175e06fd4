"""Writes tests/data/fft.json: what PyTorch's Fourier transforms give, for the cases of the tests.

Run it with a Python that has PyTorch: python tools/record_fft.py
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))
cases = importlib.import_module("fft_cases")


def main() -> None:
    lines = [f'"by": "tools/record_fft.py with torch {torch.__version__}"']
    for name, call in cases.CALLS.items():
        lines.append(f'"{name}": {json.dumps(cases.numbers(torch, call(torch, torch.fft)))}')
    for name in cases.GRADIENTS:
        lines.append(f'"gradient of {name}": {json.dumps(cases.gradient(torch, name))}')
    (ROOT / "tests/data/fft.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
