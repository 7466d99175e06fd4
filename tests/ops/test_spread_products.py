"""Products whose operands lie so that lines meet in the cache: the library is given copies, and sums what it did."""

import pytest
import strata


def at_step(rows, cols, step, transposed):
    """Of normal values, rows (columns, where transposed) `step` apart."""
    if transposed:
        return at_step(cols, rows, step, False).t()
    return strata.randn(rows, max(step, cols))[:, :cols]


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("m, k, n", [(64, 96, 512), (512, 70, 64), (31, 128, 1024), (32, 128, 1024), (1024, 64, 33), (100, 512, 500)])
@pytest.mark.parametrize("step", [0, 512, 1024])
def test_results(m, k, n, step, turned):
    strata.manual_seed(m + n + step)
    a, b, c = at_step(m, k, step, turned[0]), at_step(k, n, step, turned[1]), strata.randn(m, n)
    exact = a.double() @ b.double()
    bound = 6e-7 * (a.double().abs() @ b.double().abs())
    assert ((a @ b - exact).abs() <= bound).all()
    assert strata.equal(a @ b, a @ b)
    assert ((strata.addmm(c, a, b, beta=1, alpha=0.5) - (c.double() + 0.5 * exact)).abs() <= bound + 2e-7 * c.abs()).all()
    bias = strata.randn(n)
    assert ((strata.nn.functional.linear(a, b.t(), bias) - (exact + bias)).abs() <= bound + 2e-7 * bias.abs()).all()
    assert ((a.expand(2, m, k) @ b - exact).abs() <= bound).all()


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64", "int64"])
def test_both_matrices_repeated(name):
    """A batch of one product."""
    dtype = getattr(strata, name)
    a, b = (strata.arange(6400) % 7 - 3).to(dtype).view(64, 100), (strata.arange(7000) % 5 - 2).to(dtype).view(100, 70)
    one, batch = a @ b, a.expand(3, 64, 100) @ b.expand(3, 100, 70)
    assert strata.equal(batch, one.expand(3, 64, 70))
    c = strata.ones(3, 64, 70, dtype=dtype)
    assert strata.equal(strata.baddbmm(c, a.expand(3, -1, -1), b.expand(3, -1, -1)), one.expand(3, -1, -1) + 1)
    assert strata.equal(strata.einsum("bij,bjk->bik", a.expand(3, -1, -1), b.expand(3, -1, -1)), batch)
