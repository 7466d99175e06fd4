"""Scans along lines have the same bits however many lines there are and whichever way these lie; the order is contract 6's."""

from __future__ import annotations

import pytest
import strata

DTYPES = ("int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.fixture(params=(1, 2), autouse=True)
def _threads(request):
    before = strata.get_num_threads()
    strata.set_num_threads(request.param)
    yield
    strata.set_num_threads(before)


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert strata.equal(a.reshape(-1).clone().view(strata.uint8), b.reshape(-1).clone().view(strata.uint8))


@pytest.mark.parametrize("name", DTYPES)
def test_lines(name):
    strata.manual_seed(1)
    for lines in (1, 3, 4, 5, 9, 33):
        for length in (1, 2, 31, 32, 33, 1023, 1024, 1025, 2049, 3100):
            x = (strata.randn(lines, length) * 3).abs().to(getattr(strata, name))
            alone = strata.stack([r.cumsum(0) for r in x])
            same(x.cumsum(1), alone)
            same(x.t().contiguous().cumsum(0).t(), alone)
            same(x.t().cumsum(0).t(), alone)
            if length < 1100:
                y = 1 + x / 4096 if name != "uint8" else x
                same(y.cumprod(1), strata.stack([r.cumprod(0) for r in y]))


def test_the_order_is_that_of_blocks():
    x = strata.full((8, 2050), 0.1)
    x[:, 0] = 2.0**24
    block = strata.zeros(8, 1)
    for k in range(1024, 2048):
        block = block + x[:, k : k + 1] if k > 1024 else x[:, k : k + 1]
    same(x.cumsum(1)[:, 2047:2048], x.cumsum(1)[:, 1023:1024] + block)
