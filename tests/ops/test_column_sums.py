"""Sums across memory have the bits of sums along it, at lengths where groups of tree T are taken in other numbers, and
wherever the elements lie."""

from __future__ import annotations

import pytest
import strata

LENGTHS = (2, 15, 16, 17, 63, 64, 65, 127, 128, 130, 256, 1000, 1008, 1023, 1024, 1025, 1087, 1088, 1100, 2047, 2048, 2100, 4095, 4096, 4097, 6000, 8192, 8193)
DTYPES = ["float32", "float64", "int64", "int32", "bool", "bfloat16", "float16"]


def along(f, x):
    """f over dim 0, each of its rows alone: long enough, by what changes nothing, that they are not brought together."""
    return [f(x.select(1, c).contiguous(), 0).item() for c in range(x.shape[1])]


def same(a, b):
    return a == b or (len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_and_rows(dtype):
    strata.manual_seed(3)
    for n in LENGTHS:
        x = (strata.randn(n, 37) * 3).to(getattr(strata, dtype))
        rows = x.t().contiguous()
        for f in (strata.sum, strata.mean, strata.prod) if x.is_floating_point() else (strata.sum, strata.prod):
            assert same(f(x, 0).tolist(), f(rows, 1).tolist()), (f, n)
        if x.is_floating_point():
            assert strata.equal(x.norm(dim=0), rows.norm(dim=1)), n


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [2, 3, 10, 16, 20, 33, 64, 100, 1025])
def test_widths_and_layouts(dtype, columns):
    strata.manual_seed(columns)
    for n in (1, 4, 7, 16, 40, 100, 1030, 4100, 6000, 8200, 70000):
        if n * columns > 1_500_000:
            continue
        x = (strata.randn(n, columns) * 3).to(getattr(strata, dtype))
        wide = strata.zeros(2 * n, 2 * columns, dtype=x.dtype)
        wide[::2, ::2] = x
        wide[1::2, :columns] = x
        turned = x.t().contiguous().t()
        some = x[:, :3]
        for f in (strata.sum, strata.prod, *([] if dtype == "bool" else [strata.amax, strata.amin])):
            want = f(x, 0).tolist()
            assert same(want[:3], along(f, some)), (f, n)
            for y in (turned, wide[::2, ::2], wide[1::2, :columns]):
                assert same(f(y, 0).tolist(), want), (f, n)


def test_zeros_keep_their_signs_and_nans_are_found():
    for n in (3, 16, 50, 2000):
        for columns in (3, 17, 64):
            x = strata.full((n, columns), -0.0)
            assert strata.equal(x.sum(0).signbit(), strata.ones(columns, dtype=strata.bool))
            x[n // 2] = 0.0
            assert strata.equal(x.amax(0).signbit(), x.t().contiguous().amax(1).signbit())
            x[n - 1, 1] = float("nan")
            assert x.amax(0).isnan().tolist() == x.sum(0).isnan().tolist() == [c == 1 for c in range(columns)]


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_few_columns_for_many_threads(threads):
    strata.manual_seed(1)
    before = strata.get_num_threads()
    try:
        for shape in ((40000, 16), (100000, 3), (3000, 100), (1000, 1000), (1, 5000, 20), (66000, 2)):
            x = strata.randn(*shape)
            strata.set_num_threads(1)
            want = x.sum(-2)
            strata.set_num_threads(threads)
            assert strata.equal(x.sum(-2), want), shape
    finally:
        strata.set_num_threads(before)


def test_middle_dims_and_dims_in_another_order():
    strata.manual_seed(2)
    x = strata.randn(5, 12, 6, 40)
    for y in (x, x.permute(3, 0, 2, 1), x.permute(2, 1, 0, 3)):
        for dims in ((1,), (2,), (0, 2), (1, 3), (0, 1), (0, 1, 2)):
            kept = [d for d in range(4) if d not in dims]
            rows = y.permute(*kept, *dims).reshape(*[y.shape[d] for d in kept], -1).contiguous()
            assert strata.equal(y.sum(dims), rows.sum(-1)), dims


def test_all_of_a_turned_tensor():
    strata.manual_seed(4)
    for shape in ((300, 400), (1024, 700), (3, 70000), (70000, 3), (40, 50, 60)):
        x = strata.randn(*shape)
        y = x.transpose(-1, -2)
        assert strata.equal(y.sum(), y.contiguous().sum()), shape
        if len(shape) == 3:
            y = x.permute(2, 1, 0)
            assert strata.equal(y.sum(), y.contiguous().sum())


def test_a_gradient_of_two_summands_has_a_place_for_each():
    x, y = (strata.zeros(3, 4, requires_grad=True) for _ in range(2))
    for times in (1, 2):
        (x + y).backward(strata.ones(3, 4))
        x.grad.mul_(3)
        assert y.grad.tolist() == [[float(times)] * 4] * 3
    row = strata.zeros(4, requires_grad=True)
    strata.add(x, row, alpha=2).backward(strata.ones(3, 4))
    assert row.grad.tolist() == [6.0] * 4
