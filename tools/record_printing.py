"""Records how PyTorch prints: writes tests/data/printing.json, which tests/python/test_printing.py replays.

Run with a Python that has torch: `python tools/record_printing.py [out.json]`. Values are stored exactly (as the
doubles they convert to), so that the replay builds the very same tensors; long tensors are stored as offset + step * i.
"""

import json
import math
import random
import sys
from pathlib import Path

import torch

SEED = 20260
RANDOM_CASES = 420
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
LINES = [("int64", -5, 3), ("float32", 0.0, 0.5), ("float64", 1e-3, 0.25), ("bfloat16", 1.0, 0.0)]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1000.0, 1e8, 1e-4, 0.5, 65504.0]


def encode(value):
    if isinstance(value, complex):
        return [encode(value.real), encode(value.imag)]
    if isinstance(value, float) and (not math.isfinite(value)):
        return str(value)
    return value


def flat_values(t):
    return [encode(v) for v in t.detach().reshape(-1).tolist()]


def record(t, *, options=None, default="float32", grad=None, line=None):
    """One case: how to rebuild `t` and its text under `options`. `grad`: None, "leaf" or "add" (history x + 0)."""
    case = {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "options": options or {}}
    if line is None:
        case["values"] = flat_values(t)
    else:
        case["line"] = line
    if default != "float32":
        case["default"] = default
    if grad:
        case["grad"] = grad
        t = t.requires_grad_()
        t = t + 0 if grad == "add" else t
    torch.set_default_dtype(getattr(torch, default))
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**(options or {}))
    case["text"] = repr(t)
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)
    return case


def random_values(rng, dtype, shape):
    n = math.prod(shape)
    if dtype == "bool":
        values = [rng.random() < 0.5 for _ in range(n)]
    elif dtype in INTEGERS:
        info = torch.iinfo(getattr(torch, dtype))
        reach = rng.choice([3, 50, 1000, 2**62])
        values = [rng.randint(max(info.min, -reach), min(info.max, reach)) for _ in range(n)]
    else:
        scale = 10.0 ** rng.choice([0, 0, 0, 2, 5, 9, -3, -6, -20])
        spread = rng.choice([0, 0, 2, 6])
        whole = rng.random() < 0.3
        values = [rng.gauss(0, 1) * scale * 10 ** (rng.random() * spread) for _ in range(2 * n)]
        values = [float(round(v)) if whole else v for v in values]
        if rng.random() < 0.4:
            values = [rng.choice(SPECIAL) if rng.random() < 0.3 else v for v in values]
        values = list(map(complex, values[:n], values[n:])) if dtype.startswith("complex") else values[:n]
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(shape)


def random_options(rng):
    menu = {
        "precision": [0, 1, 2, 6, 10],
        "threshold": [0, 1, 5, 10, 100],
        "edgeitems": [0, 1, 2, 5],
        "linewidth": [1, 40, 120],
        "profile": ["default", "short", "full"],
        "sci_mode": [True, False],
    }
    return {name: rng.choice(menu[name]) for name in menu if rng.random() < 0.3}


def random_cases():
    rng = random.Random(SEED)
    dtypes = ["bool", *INTEGERS, *FLOATS, *FLOATS, "complex64", "complex128"]
    for _ in range(RANDOM_CASES):
        ndim = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
        limit = {0: 1, 1: 24, 2: 7, 3: 4, 4: 3}[ndim]
        shape = [0 if rng.random() < 0.05 else rng.randint(1, limit) for _ in range(ndim)]
        t = random_values(rng, rng.choice(dtypes), shape)
        can_grad = t.dtype.is_floating_point or t.dtype.is_complex
        yield record(
            t,
            options=random_options(rng) if rng.random() < 0.5 else {},
            default=rng.choice(["float32", "float32", "float32", "float64"]),
            grad=rng.choice([None, None, "leaf", "add"]) if can_grad else None,
        )


def long_cases():
    for shape in ([1000], [1001], [5000], [40, 40], [3, 500], [7, 12, 20], [2, 3, 400], [11, 2, 8, 9]):
        n = math.prod(shape)
        for dtype, offset, step in LINES:
            values = [offset + step * i for i in range(n)]
            t = torch.tensor(values, dtype=getattr(torch, dtype)).reshape(shape)
            yield record(t, line=[offset, step])
            yield record(t, line=[offset, step], options={"profile": "short", "linewidth": 60})


def plain_cases():
    for dtype in ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]:
        kind = getattr(torch, dtype)
        yield record(torch.ones((), dtype=kind))
        yield record(torch.ones(5, dtype=kind))
        yield record(torch.empty(0, dtype=kind))
        yield record(torch.empty((0, 3), dtype=kind))
        yield record(torch.empty((2, 0), dtype=kind), default="float64")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "tests" / "data" / "printing.json"
    cases = [*plain_cases(), *random_cases(), *long_cases()]
    lines = ",\n".join(json.dumps(case, allow_nan=False) for case in cases)
    header = json.dumps({"recorded_from": f"torch {torch.__version__}", "by": "tools/record_printing.py"})
    out.write_text(f'{header[:-1]}, "cases": [\n{lines}\n]}}\n')
    print(f"{out}: {len(cases)} cases, {out.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
