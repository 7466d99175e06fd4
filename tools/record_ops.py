"""Records PyTorch's results of every operator sample into tests/data/ops: run with an interpreter that has torch 2.13.

    python tools/record_ops.py [family ...]

One file per family of the table: outputs, or the name of the exception that PyTorch raised. Inputs are not stored; the
samples make them again from their seeds.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests/ops")]
from kit import DTYPES, SAMPLES, Maker, convert, flattened, load_samples, pack  # noqa: E402

from gen import model  # noqa: E402


def tensor(t):
    made = torch.from_numpy(np.array(t.data, order="C"))
    return made.to(getattr(torch, t.dtype))


def operator(schema):
    """The callable for a schema; None when PyTorch has no such operator."""
    if schema.ns != "aten":
        return None
    packet = getattr(torch.ops.aten, schema.name, None)
    found = getattr(packet, schema.overload or "default", None) if packet is not None else None
    if found is not None:
        return found
    for place in (torch, torch._C._nn, torch.special, torch.Tensor):
        if hasattr(place, schema.name):
            return getattr(place, schema.name)
    return None


def outputs(result):
    if isinstance(result, torch.Tensor):
        result = [result]
    if isinstance(result, (bool, int, float, complex)):
        return [np.asarray(result)]
    arrays = []
    for r in result:
        if isinstance(r, torch.Tensor):
            r = r.detach().resolve_conj()
            arrays.append((r.float() if r.dtype == torch.bfloat16 else r).contiguous().numpy())
    return arrays


def record(entry) -> dict[str, list] | None:
    op = operator(entry.schema)
    if op is None or entry.row.reference:  # which the tests compare with
        return None
    made = {}
    for dtype in DTYPES:
        results = []
        for c in SAMPLES[entry.row.samples](Maker(entry.schema.full, dtype)):
            args = convert(c.args, tensor, lambda n: getattr(torch, n))
            kwargs = {k: convert(v, tensor, lambda n: getattr(torch, n)) for k, v in c.kwargs.items()}
            try:
                result = op(*args, **kwargs)
                results.append(outputs(list(flattened(args)) if result is None else result))
            except Exception as error:  # noqa: BLE001 - the kind of error is the result
                results.append(type(error).__name__)
        made[dtype] = results
    return made


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load_samples()
    entries, _ = model.load(ROOT / "ops")
    families = sys.argv[1:] or sorted({e.family for e in entries})
    for family in families:
        index, blob, missing = {}, b"", []
        for e in (e for e in entries if e.family == family and not e.derived):
            name = e.row.samples
            if name not in SAMPLES:
                missing.append(f"{e.schema.full} ({name})")
                continue
            made = record(e)
            if made is None:
                continue
            for dtype, results in made.items():
                part, data = pack(results)
                for entry in part:
                    if not isinstance(entry, str):
                        for item in entry:
                            item[2] += len(blob)
                blob += data
                index[f"{e.schema.full}/{dtype}"] = part
        path = ROOT / f"tests/data/ops/{family}.npz"
        np.savez_compressed(path, index=np.frombuffer(json.dumps(index).encode(), np.uint8), blob=np.frombuffer(blob, np.uint8),
                            torch=np.frombuffer(torch.__version__.encode(), np.uint8))
        print(f"{family}: {len(index)} operator and dtype pairs, {path.stat().st_size:,} bytes"
              + (f"; no samples: {', '.join(missing)}" if missing else ""))


if __name__ == "__main__":
    main()
