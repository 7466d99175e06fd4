"""Sums across memory have the bits of sums along it, at lengths where groups of tree T are taken in other numbers."""

from __future__ import annotations

import pytest
import strata

LENGTHS = (2, 15, 16, 17, 63, 64, 65, 127, 128, 130, 256, 1000, 1008, 1023, 1024, 1025, 1087, 1088, 1100, 2047, 2048, 2100, 4095, 4096, 4097)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "float16"])
def test_columns_and_rows(dtype):
    strata.manual_seed(3)
    for n in LENGTHS:
        x = (strata.randn(n, 37) * 3).to(getattr(strata, dtype))
        rows = x.t().contiguous()
        for f in (strata.sum, strata.mean, strata.prod) if x.is_floating_point() else (strata.sum, strata.prod):
            assert f(x, 0).tolist() == pytest.approx(f(rows, 1).tolist(), rel=0, abs=0, nan_ok=True), (f, n)
        if x.is_floating_point():
            assert strata.equal(x.norm(dim=0), rows.norm(dim=1)), n
