"""Records how results of operands lie that are not contiguous: run with an interpreter that has torch 2.13.

    python tools/record_layouts.py

tests/data/layouts.json: of channels_last operands, per operator and case, per result, the gradient of the first operand last, 1 where it
is channels_last, else 0. tests/data/turned.json: of operands whose dims lie in another order in memory, per operator and order, per case
a word, a digit for each result: 1 where it is contiguous; - where the call raises.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

import torch
from record_ops import ROOT, operator, tensor

sys.path[:0] = [str(ROOT / "tests/ops")]
from kit import SAMPLES, Maker, convert, flattened, load_samples  # noqa: E402
from layout_cases import ORDERS, SKIPPED, cases, functional, in_order, word  # noqa: E402

from gen import model  # noqa: E402

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def apart(made):
    """What `made` gives, in a process of its own: some calls end PyTorch's. None where it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as f:
            json.dump(made(), f)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        text = f.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None


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


def words(op, made, order: str) -> list[str]:
    def one(c) -> str:
        args, *values = (convert(v, lambda t: in_order(tensor(t), order), lambda n: getattr(torch, n)) for v in (c.args, *c.kwargs.values()))
        try:
            return word(op(*args, **dict(zip(c.kwargs, values, strict=True))), torch)
        except Exception:  # noqa: BLE001 - a call that raises has no layout
            return "-"

    return [one(c) for c in made]


def record_turned() -> dict[str, dict[str, list[str]]]:
    table = {}
    for e in model.load(ROOT / "ops")[0]:
        op = None if e.derived or e.row.samples not in SAMPLES else operator(e.schema)
        if op is None or e.schema.full.startswith(SKIPPED):
            continue
        found = apart(lambda: {o: words(op, SAMPLES[e.row.samples](Maker(e.schema.full, "float32")), o) for o in ORDERS})  # noqa: B023
        if found and any("1" in w for made in found.values() for w in made):
            table[e.schema.full] = found
    for name, c in functional(Maker("layouts", "float32")).items():
        found = {o: words(getattr(torch.nn.functional, name.split()[0]), [c], o) for o in ORDERS}
        if any("1" in w for made in found.values() for w in made):
            table[name] = found
    return table


def write(path, table) -> None:
    path.write_text("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table.items()) + "\n}\n")
    print(f"{len(table)} operators and functions, {path.stat().st_size:,} bytes")


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load_samples()
    table = {}
    for e in model.load(ROOT / "ops")[0]:
        op = None if e.derived or e.row.samples not in SAMPLES else operator(e.schema)
        if op is None:
            continue
        made = apart(lambda: [record(op, c) for c in cases(e.schema.full, e.row.samples)])  # noqa: B023
        if made and any(1 in m for m in made if m):
            table[e.schema.full] = made
    for name, c in functional(Maker("layouts", "float32")).items():
        made = record(getattr(torch.nn.functional, name.split()[0]), c)
        if made and 1 in made:
            table[name] = [made]
    write(ROOT / "tests/data/layouts.json", table)
    write(ROOT / "tests/data/turned.json", record_turned())


if __name__ == "__main__":
    main()
