"""Records which results of channels_last operands PyTorch makes channels_last: run with an interpreter that has torch 2.13.

    python tools/record_layouts.py

tests/data/layouts.json: per operator and case, per result, the gradient of the first operand last, 1 or 0.
"""

from __future__ import annotations

import json
import sys
import warnings

import torch
from record_ops import ROOT, operator, tensor

sys.path[:0] = [str(ROOT / "tests/ops")]
from kit import SAMPLES, Maker, convert, flattened, load_samples  # noqa: E402
from layout_cases import cases, functional  # noqa: E402

from gen import model  # noqa: E402

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def channels_last(t):
    made = tensor(t)
    return made.contiguous(memory_format=FORMATS[made.dim()]) if made.dim() in FORMATS else made


def is_last(t) -> int:
    return int(t is not None and t.dim() in FORMATS and t.numel() > 0 and t.is_contiguous(memory_format=FORMATS[t.dim()]))


def record(op, c):
    args = convert(c.args, channels_last, lambda n: getattr(torch, n))
    kwargs = {k: convert(v, channels_last, lambda n: getattr(torch, n)) for k, v in c.kwargs.items()}
    first = args[0] if args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point() else None
    if first is not None:
        first.requires_grad_()
    try:
        result = op(*args, **kwargs)
    except Exception:  # noqa: BLE001 - a call that raises has no layout
        if first is None:
            return None
        first.requires_grad_(False)
        try:
            result = op(*args, **kwargs)
        except Exception:  # noqa: BLE001
            return None
    found = [r for r in flattened([result]) if isinstance(r, torch.Tensor)]
    made = [is_last(r) for r in found]
    target = next((r for r in found if r.requires_grad and r.is_floating_point()), None)
    if first is None or target is None:
        return made
    try:
        grad, = torch.autograd.grad(target, first, torch.ones_like(target), allow_unused=True)
    except Exception:  # noqa: BLE001 - no derivative
        return made
    return [*made, is_last(grad)]


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load_samples()
    table = {}
    for e in model.load(ROOT / "ops")[0]:
        op = None if e.derived or e.row.samples not in SAMPLES else operator(e.schema)
        if op is None:
            continue
        made = [record(op, c) for c in cases(e.schema.full, e.row.samples)]
        if any(1 in m for m in made if m):
            table[e.schema.full] = made
    for name, c in functional(Maker("layouts", "float32")).items():
        made = record(getattr(torch.nn.functional, name.split()[0]), c)
        if made and 1 in made:
            table[name] = [made]
    path = ROOT / "tests/data/layouts.json"
    path.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table.items()) + "\n}\n")
    print(f"{len(table)} operators and functions, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
