"""Records which operands have gradients in PyTorch into tests/data/gradients.json: run with an interpreter that has torch
2.13.

    python tools/record_gradients.py
"""

from __future__ import annotations

import json
import sys
import warnings

import torch
from record_ops import ROOT, operator, tensor

sys.path[:0] = [str(ROOT / "tests/ops")]
from gradient_cases import pattern  # noqa: E402
from kit import SAMPLES, Maker, load_samples  # noqa: E402
from layout_cases import functional  # noqa: E402

from gen import model  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load_samples()
    table = {}
    for e in model.load(ROOT / "ops")[0]:
        op = None if e.derived or e.row.samples not in SAMPLES or e.family in ("random", "optim") else operator(e.schema)
        if op is None:
            continue
        made = [pattern(torch, tensor, op, c) for c in SAMPLES[e.row.samples](Maker(e.schema.full, "float32"))]
        if any(made):
            table[e.schema.full] = made
    for name, c in functional(Maker("layouts", "float32")).items():
        table[name] = [pattern(torch, tensor, getattr(torch.nn.functional, name.split()[0]), c)]
    path = ROOT / "tests/data/gradients.json"
    path.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table.items()) + "\n}\n")
    print(f"{len(table)} operators and functions, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
