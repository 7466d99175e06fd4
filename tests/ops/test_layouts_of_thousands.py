"""Operators over operands of some thousand elements that step by 0, lie turned or apart: what they give of contiguous copies. Small
samples do not reach what the library does from a thousand elements on."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import strata

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools/beside"))
from calls import bare, schemas, target  # noqa: E402

N = 40
RANDOM = re.compile("rand|bernoulli|multinomial|poisson|normal|empty|dropout|rrelu|exponential|geometric|cauchy")
LAYOUTS = {
    "column": lambda x: x[:, :1].expand(N, N),
    "row": lambda x: x[:1].expand(N, N),
    "all": lambda x: x[:1, :1].expand(N, N),
    "turned": lambda x: x.t(),
    "strided": lambda x: strata.stack([x, x * 0], -1)[..., 0],
    "deep": lambda x: x[:, :1, None].expand(N, 8, 8),
    "line": lambda x: x[0, :1].expand(1100),
}
BASE = ((strata.arange(N)[:, None] * 7 + strata.arange(N)[None] * 3) % 11).to(strata.float64) / 4 - 1
VALUES = {"float32": BASE.to(strata.float32), "int64": (BASE * 4).to(strata.int64).abs(), "bool": BASE > 0}
NAMES = [
    (name, needed) for name, args in schemas()
    if (needed := [a for a in args if a["default"] is None]) and bare(needed[0]["type"]) == "Tensor" and not RANDOM.search(name)
]  # fmt: skip


def argument(a: dict, dtype: str, make, number: int):
    """An argument of that type; None where none is made here."""
    kind = bare(a["type"])
    if kind == "Tensor":
        at = a["name"].startswith(("index", "indices", "target"))
        return make(VALUES["int64"] % 7 if at else VALUES["bool"] if a["name"] in ("mask", "condition") else VALUES[dtype])
    if kind in ("int", "SymInt"):
        return number
    if kind in ("float", "Scalar"):
        return number * 0.75 if dtype == "float32" else number
    if kind == "bool":
        return False
    found = re.fullmatch(r"(?:Sym)?[iI]nt\[(\d*)\]", kind)
    return [number] * int(found[1] or make(BASE).dim()) if found else None


def whole(value):
    return value.clone(memory_format=strata.contiguous_format) if isinstance(value, strata.Tensor) else value


def same(a, b) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
    if not isinstance(a, strata.Tensor):
        return a == b or a != a and b != b  # noqa: PLR0124
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return strata.equal(a, b) or (a.dtype != strata.bool and strata.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True))


@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_give_what_they_give_of_contiguous_operands(layout: str, dtype: str) -> None:
    compared = 0
    for name, needed in NAMES:
        for number in (1, 2):
            given = [argument(a, dtype, LAYOUTS[layout], number) for a in needed]
            if any(value is None for value in given):
                continue
            operands = [i for i, value in enumerate(given) if isinstance(value, strata.Tensor)]
            for kept in {tuple(operands), tuple(operands[:1]), tuple(operands[1:])} - {()}:
                mixed = [value if i in kept else whole(value) for i, value in enumerate(given)]
                try:
                    want = target(strata, name)(*map(whole, mixed))
                except Exception:  # noqa: BLE001 - refused, whatever the layout is
                    continue
                assert same(target(strata, name)(*mixed), want), (name, layout, dtype, number, kept)
                compared += 1
    assert compared > 300
