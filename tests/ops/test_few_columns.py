"""Reductions over a dim before a last one of a few elements, and of complex numbers, whose parts lie side by side: each column
has the bits of the same column alone."""

import pytest
import strata

REDUCTIONS = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "norm": lambda x: strata.linalg.vector_norm(x, dim=1),
    "amax": lambda x: x.amax(1),
    "any": lambda x: x.any(1),
}
DTYPES = (strata.float32, strata.float64, strata.bfloat16, strata.int64, strata.uint8, strata.complex64, strata.complex128)
LENGTHS = (64, 127, 128, 130, 1000, 1024, 1025, 2100)


def tensor(n, columns, dtype):
    strata.manual_seed(n + columns)
    x = strata.randn(5, n, columns, dtype=dtype if dtype.is_complex else strata.float64)
    return x if dtype.is_complex else (x.abs() if dtype == strata.uint8 else x).to(dtype)


def bits(t):
    return t.contiguous().view(strata.uint8).tolist() if t.numel() else []


def has(name, dtype):
    return not dtype.is_complex if name == "amax" else dtype.is_floating_point or dtype.is_complex or name not in ("mean", "norm")


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in REDUCTIONS for d in DTYPES if has(n, d)], ids=str)
def test_each_column_is_reduced_as_if_alone(name, dtype):
    of = REDUCTIONS[name]
    for n in LENGTHS:
        for columns in (2, 3, 4, 7, 15):
            x = tensor(n, columns, dtype)
            alone = strata.stack([of(x[:, :, c].contiguous()) for c in range(columns)], -1)
            assert bits(of(x)) == bits(alone), (n, columns)


@pytest.mark.parametrize("dtype", (strata.complex64, strata.complex128), ids=str)
def test_sums_of_complex_numbers_are_those_of_their_parts(dtype):
    x = strata.randn(70, 300, 2, dtype=dtype)
    layouts = (x, x[..., 0], x[..., 0].t(), x[:1, :, 0].expand(70, 300), x[::2, ::3, 1], x[:, :, 0].contiguous().t(), x.permute(2, 0, 1))
    for t in layouts:
        for dims in (None, 0, 1, -1, (0, 1)):
            made = t.sum() if dims is None else t.sum(dims)
            real, imag = (p.contiguous().sum() if dims is None else p.contiguous().sum(dims) for p in (t.real, t.imag))
            assert bits(strata.view_as_real(made)) == bits(strata.stack([real, imag], -1))


@pytest.mark.parametrize("n", (0, 1, 31, 32, 33, 255 * 32, 255 * 32 + 1, 300_001))
def test_counts_of_truths(n):
    any_byte = (strata.arange(3 * n) % 5 * 60).to(strata.uint8).reshape(3, n).view(strata.bool)  # true, whatever it is but 0
    ones = (any_byte.view(strata.uint8) != 0).to(strata.int64)
    for t, of in ((any_byte, ones), (any_byte[:, : n // 2], ones[:, : n // 2]), (any_byte.t(), ones.t())):
        assert t.sum().item() == of.sum().item()
        assert t.sum(0).equal(of.sum(0)) and t.sum(1).equal(of.sum(1)) and strata.count_nonzero(t, 1).equal(of.sum(1))
    if n:
        assert strata.full((n,), True).expand(40, n).sum().item() == 40 * n
