"""Rows that are copied a few bytes away from their place in a page: src/core/memcpy.cpp has a way of its own for them."""

from __future__ import annotations

import pytest
import strata

WIDTHS = (511, 512, 513, 1000, 1024, 2047, 4096, 70_000)


@pytest.mark.parametrize("width", WIDTHS)
def test_rolled_rows(width):
    x = strata.arange(3 * width).view(3, width).to(strata.float32)
    for by in (1, 2, 3, 7, 8, width - 1):
        y = x.roll(by, 1)
        assert strata.equal(y[:, by:], x[:, : width - by]) and strata.equal(y[:, :by], x[:, width - by :])


@pytest.mark.parametrize("width", WIDTHS)
def test_parts_of_rows(width):
    x = (strata.arange(2 * (width + 40)) % 251).to(strata.uint8).view(2, width + 40)
    want = x.tolist()
    for by in range(34):
        assert x[:, by : by + width].contiguous().tolist() == [row[by : by + width] for row in want]
        assert strata.cat([x[:, :by], x[:, by:]], 1).tolist() == want


ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 64, 65)
DTYPES = (strata.uint8, strata.int16, strata.float32, strata.float64, strata.complex128)


def numbered(dtype, *sizes):
    """Elements that differ from their neighbours, also as uint8."""
    x = strata.arange(int(strata.tensor(sizes).prod())) % 253
    return x.to(dtype).view(*sizes)


def listed(x):
    return (x.real if x.is_complex() else x).tolist()


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_short_rows(dtype, threads):
    """Reversed, rolled, taken with a step, turned: rows of every class of bytes that move_rows tells apart."""
    before = strata.get_num_threads()
    strata.set_num_threads(threads)
    try:
        for columns in ROWS:
            x = numbered(dtype, 41, columns)
            rows = listed(x)
            assert listed(x.flip(0)) == rows[::-1]
            assert listed(x.flip(1)) == [r[::-1] for r in rows]
            assert listed(x.flip(0, 1)) == [r[::-1] for r in rows[::-1]]
            assert listed(x.roll(3, 0)) == rows[-3:] + rows[:-3]
            assert listed(x.roll(-1, 1)) == [r[1:] + r[:1] for r in rows]
            assert listed(x.roll((2, 5), (1, 0))) == [r[-2 % columns :] + r[: -2 % columns] if columns > 1 else r for r in rows[-5:] + rows[:-5]]
            assert listed(x[::2].contiguous()) == rows[::2]
            assert listed(x.t().contiguous()) == [list(c) for c in zip(*rows, strict=True)]
            assert listed(x.rot90(1)) == [list(c) for c in zip(*rows, strict=True)][::-1]
            assert listed(x.rot90(-1)) == [list(c)[::-1] for c in zip(*rows, strict=True)]
    finally:
        strata.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts_of_rolled(dtype):
    """The same elements whatever self lies like: turned, with steps, expanded, of four dims, rolled as one line."""
    base = numbered(dtype, 6, 10, 14)
    for x in (base, base.transpose(0, 2), base[:, ::3], base[:, :, 1::2], base[:1].expand(5, 10, 14), base[:, :, :1].expand(6, 10, 3)):
        copy = x.clone(memory_format=strata.contiguous_format)
        for dims in ((0,), (2,), (0, 2), (0, 1, 2)):
            y = x.flip(dims)
            assert y.shape == x.shape
            assert listed(y) == listed(copy.flip(dims))
            assert listed(y.flip(dims)) == listed(x)
            z = x.roll(tuple(range(1, len(dims) + 1)), dims)
            assert listed(z) == listed(copy.roll(tuple(range(1, len(dims) + 1)), dims))
            assert listed(z.roll(tuple(-k for k in range(1, len(dims) + 1)), dims)) == listed(x)
        flat = listed(copy.view(-1))
        assert listed(x.roll(5).reshape(-1)) == flat[-5:] + flat[:-5]
