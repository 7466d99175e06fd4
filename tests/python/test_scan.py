"""Scans in their stated order: blocks of 1,024 elements from left to right, totals of blocks from left to right, then the
total before a block combined with each place in it. Bit for bit, for any layout."""

import pytest
import strata

SHAPES = [(1,), (5,), (1023,), (1024,), (1025,), (3000,), (20000,), (3, 1030), (1030, 3), (2, 2100, 2), (17, 40), (40, 17),
          (1100, 70), (1, 1, 2050)]


def in_order(x, combine):
    """A scan along dim 0, row by row."""
    out, before = [], None
    for block in range(0, len(x), 1024):
        local = None
        for row in x[block : block + 1024]:
            local = row if local is None else combine(local, row)
            out.append(local if before is None else combine(before, local))
        before = local if before is None else combine(before, local)
    return strata.stack(out)


def bits(t):
    t = strata.view_as_real(t) if t.is_complex() else t
    return t.reshape(-1).view(strata.uint8)


def same(got, expected):
    return strata.equal(bits(got), bits(expected))


def values(shape, dtype, low, high):
    """Few kinds of values, so that no product leaves the dtype."""
    return ((strata.rand(*shape, dtype=strata.float64) * (high - low)) + low).to(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_order_of_floats(shape):
    strata.manual_seed(0)
    x = values(shape, strata.float32, -2, 3)
    near_one = values(shape, strata.float32, 0.96, 1.04)
    for dim in range(len(shape)):
        moved = x.movedim(dim, 0)
        assert same(x.cumsum(dim).movedim(dim, 0), in_order(moved, strata.add))
        assert same(near_one.cumprod(dim).movedim(dim, 0), in_order(near_one.movedim(dim, 0), strata.mul))
        assert same(x.logcumsumexp(dim).movedim(dim, 0), in_order(moved, strata.logaddexp))


@pytest.mark.parametrize("dtype", (strata.float64, strata.complex64, strata.complex128, strata.int8, strata.int64, strata.bool), ids=str)
@pytest.mark.parametrize("shape", [(2100,), (3, 1030), (1030, 3)], ids=str)
def test_order_of_dtypes(dtype, shape):
    strata.manual_seed(1)
    if dtype.is_complex:
        x = strata.polar(values(shape, strata.float64, 0.98, 1.02), values(shape, strata.float64, -3, 3)).to(dtype)
    else:
        x = values(shape, dtype, 0.98 if dtype.is_floating_point else -3, 1.02 if dtype.is_floating_point else 4)
    for dim in range(len(shape)):
        moved = x.movedim(dim, 0)
        if dtype is not strata.bool:
            assert same(x.cumsum(dim, dtype=dtype).movedim(dim, 0), in_order(moved, strata.add))
            assert same(x.cumprod(dim, dtype=dtype).movedim(dim, 0), in_order(moved, strata.mul))
        if dtype.is_floating_point or dtype.is_complex:
            assert same(x.logcumsumexp(dim).movedim(dim, 0), in_order(moved, strata.logaddexp))


def test_extreme_exponents():
    inf, nan = float("inf"), float("nan")
    x = strata.tensor([-inf, -inf, 800.0, 800.0, -800.0, inf, 3.0, nan, 1.0])
    for n in (1, 30):  # of one line, and of many
        got = strata.logcumsumexp(x[:, None].expand(9, n), 0)[:, -1].tolist()
        assert got[:2] == [-inf, -inf] and got[2] == 800 and got[3] == got[4] == pytest.approx(800.6931471805599)
        assert got[5] == got[6] == inf and got[7] != got[7] and got[8] != got[8]


def test_linear_scan_serves_derivatives_only():
    with pytest.raises(NotImplementedError, match="linear_scan"):
        strata.ops.strata.linear_scan(strata.ones(3, dtype=strata.int64), strata.ones(3, dtype=strata.int64), 0)
