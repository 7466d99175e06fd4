"""Factors and triangular systems on both sides of the order from which LAPACK does them (plugins/lapack/small.h)."""

import numpy as np
import pytest
import strata

L = strata.linalg
ORDERS = (1, 2, 3, 4, 5, 7, 8, 9, 12)
DTYPES = {"float32": 1e-4, "float64": 1e-12, "complex64": 1e-4, "complex128": 1e-12}


def array(t):
    return t.numpy().astype("complex128")


def made(n, columns, dtype):
    strata.manual_seed(n)
    kind = getattr(strata, dtype)
    return strata.randn(3, n, columns, dtype=kind)


def near(a, b, dtype):
    np.testing.assert_allclose(a, b, atol=DTYPES[dtype] * max(1, np.abs(b).max()), rtol=0)


def adjoint(a):
    return a.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("columns", (1, 3, 17))
def test_systems(n, columns, dtype):
    a = made(n, n, dtype).mT + 3 * n**0.5 * strata.eye(n, dtype=getattr(strata, dtype))
    a = a.flip(-2)  # so that rows are exchanged
    right, left = made(n, columns, dtype), made(columns, n, dtype)
    lu, pivots = L.lu_factor(a)
    for turned in (False, True):
        matrix = adjoint(array(a)) if turned else array(a)
        near(matrix @ array(L.lu_solve(lu, pivots, right, adjoint=turned)), array(right), dtype)
        near(array(L.lu_solve(lu, pivots, left, adjoint=turned, left=False)) @ matrix, array(left), dtype)
    near(array(L.inv(a)) @ array(a), np.broadcast_to(np.eye(n), (3, n, n)), dtype)
    near(array(L.det(a)) / np.linalg.det(array(a)), np.ones(3), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("upper", (False, True))
def test_triangles(n, upper, dtype):
    a = made(n, n, dtype)
    positive = a @ a.mH + strata.eye(n, dtype=a.dtype)
    factor = array(L.cholesky(positive, upper=upper))
    near(adjoint(factor) @ factor if upper else factor @ adjoint(factor), array(positive), dtype)
    triangle = (a.triu() if upper else a.tril()) / n + strata.eye(n, dtype=a.dtype) * 2
    right, left = made(n, 2, dtype), made(2, n, dtype)
    for unit in (False, True):
        matrix = array(triangle)
        if unit:
            matrix[..., range(n), range(n)] = 1
        options = {"upper": upper, "unitriangular": unit}
        near(matrix @ array(L.solve_triangular(triangle, right, **options)), array(right), dtype)
        near(array(L.solve_triangular(triangle, left, left=False, **options)) @ matrix, array(left), dtype)


@pytest.mark.parametrize("n", (2, 8, 9))
@pytest.mark.parametrize("m", (1, 3, 8, 11))
def test_rectangles(m, n):
    a = made(m, n, "float64")
    p, lower, upper = L.lu(a)
    near(array(p @ lower @ upper), array(a), "float64")


@pytest.mark.parametrize("n", (3, 9))
def test_verdicts(n):
    ones = strata.ones(n, n)
    assert L.lu_factor_ex(ones).info.item() == L.inv_ex(ones).info.item() == 2
    assert L.cholesky_ex(ones).info.item() == 2
    assert L.cholesky_ex(ones * float("nan")).info.item() == 1
    assert L.inv(strata.eye(n) * float("nan")).isnan().all()


def test_matrices_of_no_elements():
    for kind in ("fro", "nuc"):
        with pytest.raises(RuntimeError, match="square"):
            L.cond(strata.ones(3, 0), kind)
    p, lower, upper = L.lu(strata.empty(0, 3, 2), pivot=False)
    assert p.shape == (0,) and lower.shape == (0, 3, 2) and upper.shape == (0, 2, 2)
    one = strata.ones(1)
    assert strata.cdist(one.expand(2**62, 1), one.expand(0, 1)).shape == (2**62, 0)
