"""Records which dtypes PyTorch's operators give under autocast into tests/data/autocast.json: run with an interpreter that has torch 2.13.

    python tools/record_autocast.py

Of each operator the first sample in float32, bfloat16 and float16 on the CPU; left out where PyTorch raises.
"""

from __future__ import annotations

import json
import warnings

import torch
from record_ops import ROOT, SAMPLES, Maker, convert, load_samples, model, operator, tensor

DTYPES = ("float32", "bfloat16", "float16")


def given(result) -> list[str]:
    if isinstance(result, torch.Tensor):
        return [str(result.dtype).removeprefix("torch.")]
    return [d for r in result for d in given(r)] if isinstance(result, (list, tuple)) else []


def record(entry) -> dict[str, list[str]]:
    op, made = operator(entry.schema), {}
    for dtype in DTYPES if op is not None else ():
        calls = SAMPLES[entry.row.samples](Maker(entry.schema.full, dtype))
        try:
            first = next(calls)
            args = convert(first.args, tensor, lambda n: getattr(torch, n))
            kwargs = {k: convert(v, tensor, lambda n: getattr(torch, n)) for k, v in first.kwargs.items()}
            with torch.autocast("cpu", torch.bfloat16):
                made[dtype] = given(op(*args, **kwargs))
        except Exception:  # noqa: BLE001, S112 - no sample, or refused
            continue
    return {dtype: found for dtype, found in made.items() if found}


def main() -> None:
    warnings.simplefilter("ignore")
    load_samples()
    entries, _ = model.load(ROOT / "ops")
    found = {e.schema.full: record(e) for e in entries if e.row.samples in SAMPLES and not e.derived}
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(dtypes)}" for name, dtypes in sorted(found.items()) if dtypes)
    (ROOT / "tests/data/autocast.json").write_text("{\n" + rows + "\n}\n")
    print(f"{sum(map(bool, found.values()))} operators")


if __name__ == "__main__":
    main()
