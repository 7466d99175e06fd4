"""Writes tests/data/distributions.json: what PyTorch's distributions say, for the cases of the tests.

Run it with a Python that has PyTorch: python tools/record_distributions.py
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python/distributions"))
cases = importlib.import_module("distribution_cases")


def main() -> None:
    warnings.simplefilter("ignore")
    found = {
        "by": f"tools/record_distributions.py with torch {torch.__version__}",
        "facts": {name: cases.facts(torch, *case) for name, case in cases.CASES.items()},
        "transforms": {name: cases.transformed(torch, make) for name, make in cases.TRANSFORMS.items()},
        "no_jacobian": {name: cases.transformed(torch, make, False) for name, make in cases.NO_JACOBIAN.items()},
        "divergences": {
            name: cases.numbers(torch.distributions.kl_divergence(*make(torch, torch.distributions)))
            for name, make in cases.DIVERGENCES.items()
        },
        "mixed": cases.mixed(torch),
        "biject": cases.biject(torch),
    }
    lines = ",\n".join(f'"{kind}": {json.dumps(value)}' for kind, value in found.items())
    (ROOT / "tests/data/distributions.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
