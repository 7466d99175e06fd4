"""A row kernel whose last pass goes run by run over values of channels (run/loop/rows_runs.h): the bits of separate operators."""

from __future__ import annotations

import pytest
import strata

SHAPES = {  # and how many groups; runs with and without whole blocks, of several pieces, over the ends of parts, in few long rows
    "blocks": ((2, 6, 24, 32), 3),
    "ends": ((3, 8, 1, 713), 2),
    "pieces": ((9, 2, 2100), 1),
    "parts": ((8, 4, 70, 1000), 1),
    "long": ((1, 4, 260, 270), 2),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", SHAPES)
def test_group_norm(name, dtype, threads):
    shape, groups = SHAPES[name]
    x = strata.randn(shape).to(getattr(strata, dtype))
    n, c, positions = shape[0], shape[1], x[0, 0].numel()
    wide = strata.float64 if dtype == "float64" else strata.float32
    before = strata.get_num_threads()
    strata.set_num_threads(threads)
    try:
        for of_values in (x.dtype, strata.float32):
            if dtype == "float64" and of_values != x.dtype:
                continue
            weight, bias = strata.randn(c).to(of_values), strata.randn(c).to(of_values)
            for w, b in ((weight, bias), (weight, None), (None, bias)):
                found, mean, rstd = strata.native_group_norm(x, w, b, n, c, positions, groups, 1e-5)
                rows = x.to(wide).reshape(n, groups, -1)
                m, r = strata.native_group_norm(x.to(wide), None, None, n, c, positions, groups, 1e-5)[1:]
                scaled = ((rows - m.unsqueeze(-1)) * r.unsqueeze(-1)).reshape(n, c, -1)
                scaled = scaled * (strata.ones(c, dtype=wide) if w is None else w.to(wide)).unsqueeze(-1)
                expected = scaled + (strata.zeros(c, dtype=wide) if b is None else b.to(wide)).unsqueeze(-1)
                assert strata.equal(found, expected.reshape(shape).to(x.dtype))
                assert strata.equal(mean, m.to(mean.dtype)) and strata.equal(rstd, r.to(rstd.dtype))
    finally:
        strata.set_num_threads(before)
