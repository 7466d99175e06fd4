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
    return t.reshape(-1).contiguous().view(strata.uint8).tolist() if t.numel() else []


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


def of_masks(values):
    n = len(values)
    return {
        "nonzero": lambda m: m.nonzero(), "argwhere": strata.argwhere, "index": lambda m: values[m], "select": lambda m: values.masked_select(m),
        "put": lambda m: values.clone().index_put_((m,), strata.tensor(-1)), "scatter": lambda m: values.masked_scatter(m, values.flip(0)),
        "fill": lambda m: values.masked_fill(m, 0), "where": lambda m: strata.where(m, values, 0), "item": lambda m: strata.tensor(m[-1].item()),
        "cummax": lambda m: m.cummax(0), "cummin": lambda m: m.cummin(0), "cummax beside": lambda m: strata.stack([m, m], 1).cummax(0),
        "sort": lambda m: m.sort(stable=True), "argsort": lambda m: m.argsort(stable=True, descending=True), "mode": lambda m: m.mode()[0],
        "unique": lambda m: m.unique(return_inverse=True, return_counts=True), "rows": lambda m: strata.unique(m.reshape(n, 1), dim=0),
        "cumsum": lambda m: m.cumsum(0), "sum": lambda m: m.sum(), "int64": lambda m: m.to(strata.int64), "strided": lambda m: m[::2].to(strata.int32),
        "float": lambda m: m.float(), "any": lambda m: m.any(), "not": lambda m: ~m, "and": lambda m: m & m, "equal": lambda m: m == m.logical_not().logical_not(),
    }  # fmt: skip


@pytest.mark.parametrize("n", (1, 7, 1000, 40_000))
def test_bools_are_true_whatever_byte_they_have(n):
    """Masks of 0 and 255, as images have them, viewed as bools."""
    numbers = (strata.arange(n) * 7 % 5 * 63).to(strata.uint8)
    for name, of in of_masks(strata.arange(n)).items():
        got, wanted = (r if isinstance(r, tuple) else (r,) for r in (of(numbers.view(strata.bool)), of(numbers != 0)))
        assert all(a.equal(b) and a.dtype == b.dtype for a, b in zip(got, wanted, strict=True)), name
