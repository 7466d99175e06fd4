"""Reductions down columns and along rows go different ways, by how many rows there are and how wide they are; bits are those
of the same elements turned over, and whole numbers those of NumPy."""

import numpy as np
import pytest
import strata

WIDTHS = [1, 2, 7, 15, 16, 17, 31, 33, 48, 63, 65, 127, 130, 255, 257, 400, 511, 513, 600, 700, 801, 816, 820, 900, 1000, 1023, 1025, 1100, 1361, 2049]
COUNTS = [*range(1, 19), 31, 33, 64, 100]
DTYPES = [strata.float32, strata.float64, strata.bfloat16, strata.int32]
FUNCTIONS = {
    "sum": lambda x, d: x.sum(d),
    "prod": lambda x, d: x.prod(d),
    "amax": lambda x, d: x.amax(d),
    "argmin": lambda x, d: x.argmin(d),
    "any": lambda x, d: x.any(d),
    "mean": lambda x, d: x.mean(d),
    "norm": lambda x, d: x.norm(dim=d),
    "var": lambda x, d: x.var(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
    "softmax": lambda x, d: x.softmax(d),
}
WHOLE = ("sum", "prod", "amax", "argmin", "any")
EXACT = {"sum": np.sum, "amax": np.max, "argmin": np.argmin, "any": np.any}


def layouts(x):
    """The same elements as they lie, with gaps between them, and with gaps between rows."""
    n, m = x.shape
    apart = x.new_empty(n, 2 * m)[:, ::2]
    apart.copy_(x)
    return x, apart, x.new_empty(n, m + 3)[:, :m].copy_(x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_as_rows(name, dtype):
    if dtype == strata.int32 and name not in WHOLE:
        pytest.skip("floating types alone")
    f = FUNCTIONS[name]
    strata.manual_seed(0)
    for n in COUNTS:
        for m in WIDTHS:
            x = strata.randint(-3, 4, (n, m)).to(dtype)
            turned = x.t().contiguous()
            want = f(turned, 1)
            want = want.t() if want.dim() == 2 else want
            for given in layouts(x):
                got = f(given, 0)
                assert strata.equal(got.nan_to_num(7.0), want.nan_to_num(7.0)) if got.is_floating_point() else strata.equal(got, want), (n, m)
            if name in EXACT:
                exact = EXACT[name](x.to(strata.float64).numpy(), 0)
                assert strata.equal(want, strata.from_numpy(np.asarray(exact)).to(want.dtype)), (n, m)


@pytest.mark.parametrize("name", ["sum", "amax", "var"])
def test_columns_of_planes(name):
    f = FUNCTIONS[name]
    strata.manual_seed(1)
    for n in (2, 3, 5, 8, 15, 17):
        for m in (16, 60, 200, 500, 820, 1000):
            x = strata.randint(-3, 4, (3, n, m)).float()
            want = strata.stack([f(p.t().contiguous(), 1) for p in x])
            assert strata.equal(f(x, 1), want) and strata.equal(f(x.transpose(0, 1).contiguous(), 0), want), (n, m)
