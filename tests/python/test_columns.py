"""Operators whose loops run across memory give the bits of those that run along it."""

import pytest
import strata as torch

LENGTHS = [2, 3, 15, 16, 17, 31, 100, 127, 129, 500, 1007, 1009, 1024, 1025, 2047, 4096, 5001]


def same(a, b):
    return torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32])
def test_sums_of_columns(dtype):
    torch.manual_seed(0)
    for n in LENGTHS:
        for columns in (9, 16, 20, 70):
            x = (torch.randn(n, columns) * 100).to(dtype)
            along = x.t().contiguous()
            assert torch.equal(x.sum(0), along.sum(1)), (n, columns)
            if dtype.is_floating_point:
                assert torch.equal(x.mean(0), along.mean(1)) and torch.equal(x.norm(dim=0), along.norm(dim=1))
                assert same((x / 100).prod(0), (along / 100).prod(1))


def test_sums_of_columns_in_more_dims():
    torch.manual_seed(0)
    x = torch.randn(5, 300, 3, 40)
    for dim in (0, 1, 2, (0, 1), (1, 2)):
        dims = dim if isinstance(dim, tuple) else (dim,)
        kept = [d for d in range(4) if d not in dims]
        along = x.permute(*kept, *dims).contiguous().flatten(len(kept))
        assert torch.equal(x.sum(dim), along.sum(-1)), dim
    y = torch.randn(600, 64)[::2, 1:50:1]
    assert torch.equal(y.sum(0), y.t().contiguous().sum(1))
    out = torch.empty(2, 49)[:, ::1].t()[:, 0]
    assert torch.equal(torch.sum(y, 0, out=out), y.sum(0))
    last = torch.randn(4, 24, 7, 7).to(memory_format=torch.channels_last)
    assert torch.equal(last.sum((0, 2, 3)), last.permute(1, 0, 2, 3).contiguous().flatten(1).sum(1))


def test_long_columns():
    torch.manual_seed(0)
    x = torch.randn(3 * 65536 + 77, 19)
    assert torch.equal(x.sum(0), x.t().contiguous().sum(1))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_columns(threads):
    torch.manual_seed(0)
    x = torch.randn(70000, 40)
    before, kept = x.sum(0), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(x.sum(0), before)
    finally:
        torch.set_num_threads(kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.uint8])
@pytest.mark.parametrize("channels", [1, 3, 16, 17, 64, 300])
def test_max_pool_of_channels_last(dtype, channels):
    torch.manual_seed(0)
    x = (torch.randn(2, channels, 11, 9) * 50).to(dtype)
    if dtype.is_floating_point:
        x[0, 0, 3, 3] = x[1, 0, 3, 4] = float("nan")
    last = x.to(memory_format=torch.channels_last)
    for kernel, stride, padding, dilation, ceil in ((3, 2, 1, 1, False), (2, 2, 0, 1, True), ((3, 2), 1, (1, 0), 2, False)):
        args = (kernel, stride, padding, dilation, ceil)
        values, places = torch.nn.functional.max_pool2d(x, *args, return_indices=True)
        v, p = torch.nn.functional.max_pool2d(last, *args, return_indices=True)
        assert torch.equal(p, places) and same(v.double(), values.double())
        assert v.is_contiguous(memory_format=torch.channels_last) and p.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [5, 16, 32, 64])
def test_small_products_of_a_batch_are_those_of_its_matrices(dtype, n):
    torch.manual_seed(0)
    a, b = torch.randn(70, n, n).to(dtype), torch.randn(70, n, n).to(dtype)
    for x, y in ((a, b), (a, b.transpose(1, 2)), (a.transpose(1, 2), b)):
        got = torch.bmm(x, y)
        for i in (0, 33, 69):
            assert torch.equal(got[i], torch.mm(x[i], y[i]))


def test_places_beyond_32_bits():
    """Windows over more than 2^31 places, which lie in one column of memory: of equals the first, wherever it is."""
    height, width = 65537, 40009
    for channels, strides in ((16, (0, 1, 0, 0)), (1, (0, 0, 0, 0))):
        x = torch.arange(16, dtype=torch.float32).as_strided((1, channels, height, width), strides)
        values, places = torch.nn.functional.max_pool2d(x, 2, (30000, 3000), return_indices=True)
        rows, columns = torch.arange(3) * 30000, torch.arange(values.shape[-1]) * 3000
        assert values.shape[-1] > 8 and torch.equal(places[0, -1], rows[:, None] * width + columns)
        assert torch.equal(values[0, :, 0, 0], torch.arange(channels, dtype=torch.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64])
def test_scans_of_short_lines(dtype):
    """Lines are scanned one by one, or some side by side, from left to right in either case."""
    torch.manual_seed(0)
    for lines, length in ((16, 1), (17, 3), (100, 4), (70, 64), (33, 1000), (20, 1024), (15, 9), (1000, 17)):
        x = (torch.randn(lines, length) * (1 if dtype.is_complex else 2)).to(dtype)
        for scan in (torch.cumsum, torch.cumprod):
            together = scan(x, -1)
            assert torch.equal(together.nan_to_num() if dtype.is_floating_point else together,
                               torch.stack([scan(line, 0).nan_to_num() if dtype.is_floating_point else scan(line, 0) for line in x]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int32, torch.int64])
@pytest.mark.parametrize("step", [1, 2])
def test_short_rows_that_are_converted(dtype, step):
    """Rows of up to 64 elements, in other dtypes than the sum's or at a distance, for many rows, lie as columns at last."""
    torch.manual_seed(0)
    for rows, length in ((4096, 32), (1000, 33), (300, 64), (5000, 5)):
        x = (torch.randn(rows, step * length) * 100).to(dtype)[:, ::step]
        want = torch.stack([row.contiguous().sum() for row in x[::97]])
        assert torch.equal(x.sum(-1)[::97], want), (rows, length)


def test_rows_whose_neighbours_lie_in_another_order():
    torch.manual_seed(0)
    x = torch.randn(64, 100, 8).transpose(1, 2)
    for f in (lambda t: t.softmax(0), lambda t: t.var(0), lambda t: t.sum(0), lambda t: t.max(0)[1]):
        assert torch.equal(f(x), f(x.contiguous()))


def test_joins_of_single_elements():
    for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128):
        for count, width in ((2, 1), (3, 1), (2, 2), (2, 3), (5, 4)):
            parts = [(torch.arange(300 * width) + 7 * k).to(dtype).reshape(300, width) for k in range(count)]
            joined = torch.cat(parts, 1)
            for k, part in enumerate(parts):
                assert torch.equal(joined[:, k * width : (k + 1) * width], part), (dtype, count, width)
    assert torch.equal(torch.stack([torch.arange(5), torch.arange(5) + 9], -1).flatten(), torch.tensor([0, 9, 1, 10, 2, 11, 3, 12, 4, 13]))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_sums_are_sums_of_parts(dtype):
    torch.manual_seed(0)
    real = torch.float32 if dtype == torch.complex64 else torch.float64
    for shape in ((3, 70000), (200, 33), (33, 200), (1500, 4), (1, 1), (0, 3), (4, 5, 300)):
        x = torch.complex(torch.randn(*shape).to(real), torch.randn(*shape).to(real) * 1e3)
        for y in (x, x.transpose(0, 1), x[..., ::2], x[..., :1].expand(*shape)):
            for sums in ((lambda t: t.sum()), (lambda t: t.sum(0)), (lambda t: t.sum(-1)), (lambda t: t.sum((0, 1), keepdim=True))):
                got = sums(y)
                assert got.dtype == dtype
                assert torch.equal(got.real, sums(y.real.contiguous())) and torch.equal(got.imag, sums(y.imag.contiguous())), shape
    minus = torch.complex(torch.full((40,), -0.0, dtype=real), torch.full((40,), -0.0, dtype=real)).sum()
    assert torch.signbit(minus.real) and torch.signbit(minus.imag)
    wide = torch.randn(1000, 3).sum(0, dtype=dtype)  # of another dtype's elements
    assert wide.dtype == dtype and torch.equal(wide.imag, torch.zeros(3, dtype=real))
