"""Indices that say one place for whole lines, and rows of a few elements that are moved as one: as any others, bit for bit."""

from __future__ import annotations

import pytest
import strata

DTYPES = (strata.bool, strata.uint8, strata.int16, strata.int64, strata.float16, strata.bfloat16, strata.float32, strata.float64,
          strata.complex64, strata.complex128)


@pytest.fixture(params=(1, 2), autouse=True)
def _threads(request):
    before = strata.get_num_threads()
    strata.set_num_threads(request.param)
    yield
    strata.set_num_threads(before)


def drawn(dtype, *sizes):
    x = strata.randn(sizes, generator=strata.Generator().manual_seed(3)) * 50
    return (x > 0) if dtype == strata.bool else x.abs().to(dtype) if dtype == strata.uint8 else x.to(dtype)


def same(a, b):
    """Bit for bit: as bytes."""
    assert a.shape == b.shape
    assert a.contiguous().view(strata.uint8).tolist() == b.contiguous().view(strata.uint8).tolist()


def places(n, high, *sizes):
    """n places below high, along dim 0 of an index of these sizes, which repeats along its other dims."""
    g = strata.Generator().manual_seed(n)
    return strata.randint(0, high, (n,) + (1,) * len(sizes), generator=g).expand(n, *sizes)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lines(dtype):
    for n, high, columns, self_columns in ((7, 5, 3, 3), (40, 9, 17, 20), (3000, 2, 5, 5), (3000, 2, 40, 41), (1, 4, 6, 6)):
        index, x, y = places(n, high, columns), drawn(dtype, high, self_columns), drawn(dtype, n + 2, self_columns)
        plain = index.contiguous()
        same(x.gather(0, index), x.gather(0, plain))
        same(x.scatter(0, index, y), x.scatter(0, plain, y))
        same(x.scatter_add(0, index, y), x.scatter_add(0, plain, y))
        same(x.t().contiguous().t().scatter_add(0, index, y), x.scatter_add(0, plain, y))
        same(x.t().scatter_add(1, index.t(), y.t()).t(), x.scatter_add(0, plain, y))


def test_lines_of_three_dims():
    x, y, index = drawn(strata.float32, 6, 4, 10), drawn(strata.float32, 9, 4, 10), places(9, 6, 3, 8)
    same(x.gather(0, index), x.gather(0, index.contiguous()))
    same(x.scatter_add(0, index, y), x.scatter_add(0, index.contiguous(), y))
    middle, z = index.transpose(0, 1), drawn(strata.float32, 4, 6, 10)
    same(z.gather(1, middle), z.gather(1, middle.contiguous()))


def test_special_values_of_lines():
    x = strata.tensor([[-0.0, float("inf"), float("nan")]]).expand(4, 3).contiguous()
    index = strata.tensor([[1], [1], [0]]).expand(3, 3)
    zeros = strata.full((4, 3), -0.0)
    same(zeros.scatter_add(0, index, x[:3]), zeros.scatter_add(0, index.contiguous(), x[:3]))
    c = strata.complex(x, x.flip(1))
    same(strata.zeros(4, 3, dtype=c.dtype).scatter_add(0, index, c[:3]), strata.zeros(4, 3, dtype=c.dtype).scatter_add(0, index.contiguous(), c[:3]))


@pytest.mark.parametrize("wrong", (-1, 5))
def test_outside(wrong):
    x, index = strata.zeros(5, 8), strata.tensor([[1], [wrong]]).expand(2, 8)
    for call in (lambda: x.gather(0, index), lambda: x.scatter_add_(0, index, strata.ones(2, 8)), lambda: x.scatter_(0, index, strata.ones(2, 8))):
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 0 with size 5"):
            call()
    assert not x.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_as_elements(dtype):
    """Rows of two to sixteen bytes, also where they do not lie so that they could be one."""
    index = strata.tensor([3, 0, 0, 29, 7])
    for columns in (1, 2, 3, 4, 5, 8, 16):
        base = drawn(dtype, 30, columns + 2)
        for x in (base[:, :columns].contiguous(), base[:, :columns], base[:, 1 : columns + 1], base[:, 2:], base[::2].repeat(2, 1)[:, :columns]):
            same(x.index_select(0, index), strata.stack([x[int(i)] for i in index]))
            same(x.index_copy(0, index[1:] + strata.tensor([0, 1, 0, 0]), x[:4]),
                 strata.stack([x[{0: 0, 1: 1, 29: 2, 7: 3}.get(r, r)] for r in range(30)]))
            padded = strata.nn.functional.pad(x.view(1, 1, 30, columns) if x.is_contiguous() else x[None, None], (0, 0, 2, 1), mode="replicate") \
                if x.is_floating_point() else None
            if padded is not None:
                same(padded[0, 0], strata.cat([x[:1], x[:1], x, x[-1:]]))
            same(x.tril(), strata.stack([strata.cat([x[r, : r + 1], strata.zeros_like(x[r, r + 1 :])]) for r in range(30)]))
