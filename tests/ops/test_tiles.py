"""Pointwise operators over long rows of operands that lie turned over are computed in tiles: the same elements as of contiguous
operands, for every operand's layout, at sizes about those of tiles."""

import pytest
import strata as torch

SIZES = [(16, 257), (17, 512), (31, 300), (40, 257), (33, 2049), (300, 1025), (257, 260)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int16, torch.int64, torch.complex64, torch.complex128, torch.bool]


def values(rows, columns, dtype):
    return torch.randint(-9, 9, (rows, columns)).to(dtype)


def layouts(rows, columns, dtype):
    """Tensors of one shape, each of another layout."""
    yield values(rows, columns, dtype)
    yield values(columns, rows, dtype).t()
    yield values(columns, 2 * rows, dtype)[:, rows:].t()
    yield values(2 * columns, rows, dtype)[::2].t()
    yield values(columns, rows, dtype).flip(0).t()
    yield values(1, columns, dtype).expand(rows, columns)
    yield values(columns, 1, dtype).t().expand(rows, columns)
    yield values(rows, 1, dtype).expand(rows, columns)
    yield values(rows, 2 * columns, dtype)[:, ::2]
    yield values(columns, rows, torch.float32).t()
    yield values(columns, 2 * rows, torch.int32)[:, ::2].t()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_inputs(dtype):
    torch.manual_seed(0)
    for rows, columns in SIZES:
        turned = values(columns, rows, dtype).t()
        for other in layouts(rows, columns, dtype):
            want = torch.eq(turned.contiguous(), other.contiguous())
            assert torch.equal(torch.eq(turned, other), want) and torch.equal(torch.eq(other, turned), want)
            want = torch.where(want, turned.contiguous(), other.contiguous())
            assert torch.equal(torch.where(torch.eq(turned, other), turned, other), want)


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
def test_outputs(dtype):
    for rows, columns in SIZES:
        for out in layouts(rows, columns, dtype):
            if out.dtype != dtype or 0 in out.stride():
                continue
            for other in layouts(rows, columns, dtype):
                if other.dtype != dtype:
                    continue
                was, turned = out.clone(memory_format=torch.contiguous_format), values(columns, rows, dtype).t()
                want = was + other.contiguous()
                assert torch.equal(out.add_(other), want)
                torch.mul(turned, other, out=out)
                assert torch.equal(out, turned.contiguous() * other.contiguous())


def test_around_what_is_written():
    """Nothing beside a result is touched."""
    for rows, columns in SIZES:
        memory = torch.full((columns + 2, rows + 2), 7.0)
        inner = memory[1:-1, 1:-1].t()
        inner.copy_(torch.zeros(rows, columns))
        inner.add_(values(rows, columns, torch.float32).abs() + 100)
        assert (inner >= 100).all()
        edge = [memory[0], memory[-1], memory[:, 0], memory[:, -1]]
        assert all((line == 7).all() for line in edge)


@pytest.mark.parametrize("threads", [1, 2])
def test_of_three_dims(threads):
    torch.set_num_threads(threads)
    x = values(6 * 300, 40, torch.float32).view(6, 300, 40)
    for perm in ((2, 1, 0), (2, 0, 1), (0, 2, 1), (1, 2, 0), (1, 0, 2)):
        turned = x.permute(perm)
        y = values(1, turned.numel(), torch.float32).view(turned.shape)
        assert torch.equal(turned * y, turned.contiguous() * y)
        assert torch.equal(turned.double() - y, turned.contiguous().double() - y)
        assert torch.equal(turned / 3 + y[:1], turned.contiguous() / 3 + y[:1])
    torch.set_num_threads(2)


def test_what_is_refused_is_told():
    x, y = values(300, 40, torch.int32).t(), torch.ones(40, 300, dtype=torch.int32)
    y[39, 299] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(x, y, rounding_mode="floor")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.complex128], ids=str)
def test_far_dims(dtype):
    """An operand lies along a dim that is neither the rows' nor the one next to it."""
    torch.manual_seed(0)
    for shape in [(100, 3, 256), (17, 5, 33), (16, 2, 3, 130), (40, 1, 31), (15, 4, 200)]:
        x = torch.randint(-9, 9, shape).to(dtype)
        for order in [(1, 2, 0), (2, 1, 0), (1, 0, 2), (2, 0, 1)]:
            order = (*order, 3)[: len(shape)] if len(shape) == 3 else (3, *order)
            back = [order.index(d) for d in range(len(shape))]
            turned = torch.randint(-9, 9, shape).to(dtype).permute(order).contiguous().permute(back)
            want = x.contiguous() * turned.contiguous()
            for a, b in ((x, turned), (turned, x)):
                assert torch.equal(a * b, want) and torch.equal(torch.mul(a, b, out=torch.empty(shape, dtype=dtype)), want)
                into = torch.zeros(shape, dtype=dtype).permute(order).contiguous().permute(back)
                assert torch.equal(torch.mul(a, b, out=into), want) and into.stride() == turned.stride()
