"""The table's entries as test cases, the recorded results, and the conversions to our tensors."""

from __future__ import annotations

import json
import os
import random
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in (str(ROOT), str(Path(__file__).resolve().parent)):
    if folder not in sys.path:
        sys.path.insert(0, folder)
import strata  # noqa: E402
from kit import DTYPES, FLOATS, SAMPLES, Maker, convert, flattened, load_samples, unpack  # noqa: E402
from layout_cases import functional  # noqa: E402

from gen import model  # noqa: E402

load_samples()
ENTRIES = [e for e in model.load(Path(os.environ.get("STRATA_TABLE", ROOT / "ops")))[0] if not e.derived]
TESTED = ["float32", "float64", "bfloat16", "int64", "bool", "float16", "int32", "uint8", "complex64"]
# Why an operator has no test of a kind; `./run coverage` counts these. Keys: operator or "family:<yaml stem>".
SKIPS: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "skips.json").read_text())


def recorded_calls(name: str) -> tuple:
    """What a record names and its calls in float32: an operator with its samples, or a function of layout_cases."""
    entry = next((e for e in ENTRIES if e.schema.full == name), None)
    if entry is None:
        return getattr(strata.nn.functional, name.split()[0]), [functional(Maker("layouts", "float32"))[name]]
    return operator(entry.schema), list(SAMPLES[entry.row.samples](Maker(name, "float32")))


def skip_reason(entry, kind: str) -> str | None:
    if kind == "meta" and entry.row.size:
        return "the size of the result is a matter of values"
    if kind == "meta" and "value" in entry.reads:
        return "its result depends on values"
    table = SKIPS.get(kind, {})
    return table.get(entry.schema.full) or table.get(f"family:{entry.family}")


def sampled(cases: list, keep: int, of: str = "") -> list:
    """All cases, or a part of them chosen by the seed, of each name another."""
    if os.environ.get("STRATA_TEST_ALL") or len(cases) <= keep:
        return cases
    chooser = random.Random(os.environ.get("STRATA_TEST_SEED", "0") + of)
    return [cases[i] for i in sorted(chooser.sample(range(len(cases)), keep))]


@cache
def recorded(family: str) -> tuple[dict, bytes]:
    path = ROOT / f"tests/data/ops/{family}.npz"
    if not path.exists():
        return {}, b""
    data = np.load(path)
    return json.loads(data["index"].tobytes()), data["blob"].tobytes()


def tensor(t):
    return strata.from_numpy(np.array(t.data, order="C")).to(getattr(strata, t.dtype))


def dtype(name: str):
    return getattr(strata, name)


def operator(schema):
    return getattr(getattr(getattr(strata.ops, schema.ns), schema.name), schema.overload or "default")


def calls(entry, dtype_name: str):
    """The samples of an entry, with our tensors: (args, kwargs)."""
    for c in SAMPLES[entry.row.samples](Maker(entry.schema.full, dtype_name)):
        yield convert(c.args, tensor, dtype), {k: convert(v, tensor, dtype) for k, v in c.kwargs.items()}


def run(op, args, kwargs) -> list[np.ndarray]:
    """The outputs of a call; of an operator that returns nothing, its arguments afterwards."""
    result = op(*args, **kwargs)
    return outputs(list(flattened(args)) if result is None else result)


def outputs(result) -> list[np.ndarray]:
    if isinstance(result, strata.Tensor):
        result = [result]
    if isinstance(result, (bool, int, float, complex)):
        return [np.asarray(result)]
    arrays = []
    for r in result:
        if isinstance(r, strata.Tensor):
            r = r.detach()
            arrays.append((r.float() if r.dtype == strata.bfloat16 else r).contiguous().numpy())
    return arrays


TOLERANCE = {"float16": (1e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (2e-6, 2e-6), "float64": (1e-7, 1e-7),
             "complex64": (2e-6, 2e-6)}


def assert_same(ours: list[np.ndarray], theirs: list[np.ndarray], dtype_name: str, where: str) -> None:
    assert len(ours) == len(theirs), f"{where}: {len(ours)} results, expected {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape, f"{where}: shape {a.shape}, expected {b.shape}"
        assert a.dtype == b.dtype, f"{where}: dtype {a.dtype}, expected {b.dtype}"
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b, err_msg=where)
        else:
            rtol, atol = TOLERANCE.get(dtype_name, (2e-6, 2e-6))
            if a.dtype == np.float16 and dtype_name != "float16":
                rtol, atol = TOLERANCE["float16"]
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=True, err_msg=where)


def bits(a: np.ndarray) -> bytes:
    """The bits of an array, with every NaN alike."""
    if a.dtype.kind == "c":
        a = np.ascontiguousarray(a).view(a.real.dtype)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return np.ascontiguousarray(a).tobytes()


__all__ = ["DTYPES", "ENTRIES", "FLOATS", "SAMPLES", "SKIPS", "TESTED", "assert_same", "bits", "calls", "dtype", "operator", "outputs",
           "pytest", "recorded", "run", "sampled", "skip_reason", "strata", "tensor", "unpack"]
