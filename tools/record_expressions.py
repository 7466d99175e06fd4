"""Records what expressions come to in PyTorch into tests/data/expressions.json.gz: run with an interpreter that has torch
2.13.

    python tools/record_expressions.py
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/ops"))
from expression_cases import FAMILIES, outcome  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    made = {family: [outcome(e, torch) for e in cases()] for family, cases in FAMILIES.items()}
    path = ROOT / "tests/data/expressions.json.gz"
    path.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))
    print(f"{sum(map(len, made.values()))} expressions, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
