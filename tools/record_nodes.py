"""Records the names of PyTorch's autograd nodes and how many edges they have, for every operator of the table, into
tests/data/nodes.json: run with an interpreter that has torch 2.13.

    python tools/record_nodes.py
"""

from __future__ import annotations

import json
import warnings

import torch
from record_ops import ROOT, SAMPLES, Maker, convert, flattened, load_samples, model, operator, tensor


def recording(value):
    """The argument, asking for a gradient where it can have one."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.clone().requires_grad_(True)
    if isinstance(value, (list, tuple)):
        return type(value)(recording(v) for v in value)
    return value


def node_of(op, args, kwargs) -> list | None:
    """[name, edges] of each output that has a node; None where the call raises or records nothing."""
    try:
        result = op(*args, **kwargs)
    except Exception:  # noqa: BLE001 - a sample that is not accepted is no sample of a node
        return None
    nodes = [r.grad_fn for r in flattened([result]) if isinstance(r, torch.Tensor)]
    found = [None if n is None else [type(n).__name__, len(n.next_functions)] for n in nodes]
    return found if any(found) else None


def main() -> None:
    warnings.simplefilter("ignore")
    load_samples()
    entries, _ = model.load(ROOT / "ops")
    found = {}
    for e in entries:
        op = operator(e.schema)
        if e.derived or op is None or e.row.samples not in SAMPLES:
            continue
        for i, c in enumerate(SAMPLES[e.row.samples](Maker(e.schema.full, "float64"))):
            args = convert(c.args, tensor, lambda n: getattr(torch, n))
            kwargs = {k: convert(v, tensor, lambda n: getattr(torch, n)) for k, v in c.kwargs.items()}
            args = [a if written else recording(a) for a, written in zip(args, [x.written for x in e.schema.args])]
            made = node_of(op, args, {k: recording(v) for k, v in kwargs.items()})
            if made is not None:
                found[e.schema.full] = [i, made]
                break
    path = ROOT / "tests/data/nodes.json"
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(found.items()))
    path.write_text("{\n" + lines + "\n}\n")
    print(f"{len(found)} operators, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
