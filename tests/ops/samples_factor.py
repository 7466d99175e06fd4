"""Samples of what factors of matrices are used for, of pseudo-inverses, ranks and condition numbers."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample
from samples_decompose import differentiable_only, hermitian, regular, singular, spread

INF = float("inf")


def pivots(*rows: list[int]) -> T:
    return T(np.array(rows if len(rows) > 1 else rows[0], np.int32), "int32")


@sample("lu_factor_ex")
def lu_factor_ex(m):
    yield call(m.tensor(3, 3))
    yield call(m.tensor(2, 4, 3))
    yield call(m.tensor(3, 4))
    if not differentiable_only(m):
        yield call(singular(m, 3))
    yield call(m.tensor(0, 3))
    yield call(m.tensor(3, 3), pivot=False)
    yield call(m.tensor(3))


@sample("lu_factor")
def lu_factor(m):
    yield call(m.tensor(3, 3))
    yield call(m.tensor(2, 2, 3))
    yield call(singular(m, 3))


@sample("lu")
def lu(m):
    yield call(m.tensor(3, 3))
    yield call(m.tensor(2, 4, 3))
    yield call(m.tensor(3, 4))
    yield call(m.tensor(2, 0))


@sample("lu_unpack")
def lu_unpack(m):
    yield call(m.tensor(3, 3), pivots([2, 3, 3]))
    yield call(m.tensor(2, 4, 3), pivots([4, 3, 4], [1, 2, 3]))
    yield call(m.tensor(3, 4), pivots([3, 2, 3]), True, False)
    if not differentiable_only(m):
        yield call(m.tensor(3, 4), pivots([3, 2, 3]), False, True)
    yield call(m.tensor(3, 3), m.integers(3))


@sample("lu_solve")
def lu_solve(m):
    yield call(regular(m, 3, 3), pivots([2, 3, 3]), m.tensor(3, 2))
    yield call(regular(m, 3, 3), pivots([2, 3, 3]), m.tensor(3, 2), adjoint=True)
    yield call(regular(m, 2, 3, 3), pivots([2, 3, 3], [1, 2, 3]), m.tensor(2, 3), left=False)
    yield call(regular(m, 3, 3), pivots([3, 2, 3]), m.tensor(2, 2, 3), left=False, adjoint=True)
    yield call(regular(m, 3, 3), pivots([3, 2, 3]), m.tensor(2, 2))


@sample("lu_solve_plain")
def lu_solve_plain(m):
    yield call(m.tensor(3, 2), regular(m, 3, 3), pivots([2, 3, 3]))
    yield call(m.tensor(2, 3, 2), regular(m, 3, 3), pivots([2, 3, 3]))


def triangle(m, *shape: int, upper: bool = False) -> T:
    """A factor of Cholesky's: its diagonal is real."""
    t = regular(m, *shape)
    half = (np.triu if upper else np.tril)(t.data)
    return T(np.where(np.eye(shape[-1], dtype=bool), half.real, half).astype(t.data.dtype), t.dtype)


@sample("cholesky_solve")
def cholesky_solve(m):
    yield call(m.tensor(3, 2), triangle(m, 3, 3))
    yield call(m.tensor(2, 3, 2), triangle(m, 3, 3, upper=True), True)
    yield call(m.tensor(3, 2), triangle(m, 2, 3, 3))
    yield call(m.tensor(2, 2), triangle(m, 3, 3))
    yield call(m.tensor(3), triangle(m, 3, 3))


@sample("cholesky_inverse")
def cholesky_inverse(m):
    yield call(triangle(m, 3, 3))
    yield call(triangle(m, 2, 3, 3, upper=True), True)
    yield call(m.tensor(2, 3))


@sample("pinv_tensors")
def pinv_tensors(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 4, 2))
    yield call(spread(m, 2, 2, 3), rtol=T(np.array([1e-3, 1e-6], np.float32), "float32"))
    yield call(spread(m, 3, 2), atol=T(np.array(0.1, np.float64), "float64"))
    if not differentiable_only(m):
        yield call(hermitian(m, 3, 3), hermitian=True)
    yield call(m.tensor(0, 3))
    yield call(m.tensor(3))


@sample("pinv_numbers")
def pinv_numbers(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 4, 2), atol=0.5, rtol=0.1)
    yield call(spread(m, 3, 2), atol=3.1)
    yield call(hermitian(m, 3, 3), hermitian=True)
    yield call(m.tensor(2, 3, 0))
    yield call(m.tensor(3))


@sample("pinv_rcond")
def pinv_rcond(m):
    yield call(spread(m, 3, 3), 0.1)
    yield call(spread(m, 2, 4, 2), 1e-6)
    yield call(hermitian(m, 3, 3), 1e-4, True)


@sample("pinv_rcond_tensor")
def pinv_rcond_tensor(m):
    yield call(spread(m, 2, 4, 2), T(np.array([1e-3, 0.01], np.float32), "float32"))
    yield call(spread(m, 3, 3), T(np.array(1e-3, np.float64), "float64"))
    yield call(spread(m, 3, 3), T(np.array(1j, np.complex64), "complex64"))


@sample("pinverse")
def pinverse(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 3), 1e-5)


@sample("rank_tensors")
def rank_tensors(m):
    yield call(spread(m, 3, 3))
    yield call(singular(m, 3))
    yield call(spread(m, 2, 4, 2), atol=T(np.array([0.5, 100], np.float32), "float32"))
    yield call(hermitian(m, 3, 3), rtol=T(np.array(0.3, np.float64), "float64"), hermitian=True)
    yield call(m.tensor(0, 3))
    yield call(m.tensor(3))


@sample("condition")
def condition(m):
    yield call(spread(m, 3, 3))
    for order in (2, -2, 1, -1, INF, -INF):
        yield call(spread(m, 2, 3, 3), order)
    yield call(spread(m, 4, 3), 2)
    yield call(spread(m, 4, 3), 1)
    yield call(singular(m, 3), 1)
    yield call(m.tensor(2, 0, 0))
    yield call(m.tensor(3, 3), 3)
    yield call(m.tensor(3))


@sample("condition_named")
def condition_named(m):
    yield call(spread(m, 3, 3), "fro")
    yield call(spread(m, 2, 3, 3), "nuc")
    yield call(spread(m, 3, 3), "other")


@sample("tensorinv")
def tensorinv(m):
    t = regular(m, 6, 6)
    yield call(T(t.data.reshape(2, 3, 6), t.dtype))
    yield call(T(t.data.reshape(6, 3, 2), t.dtype), 1)
    yield call(m.tensor(2, 3, 5))
    yield call(m.tensor(2, 2), 0)


@sample("tensorsolve")
def tensorsolve(m):
    t = regular(m, 6, 6)
    yield call(T(t.data.reshape(2, 3, 6), t.dtype), m.tensor(2, 3))
    yield call(T(np.moveaxis(t.data.reshape(2, 3, 2, 3), (1, 3), (0, 2)).copy(), t.dtype), m.tensor(3, 3), [1, 3])
    yield call(T(np.moveaxis(t.data.reshape(2, 3, 2, 3), 3, 0).copy(), t.dtype), m.tensor(2, 3), [0])
    yield call(m.tensor(2, 3, 5), m.tensor(2, 3))


@sample("lstsq")
def lstsq(m):
    yield call(spread(m, 4, 2), m.tensor(4, 3))
    yield call(spread(m, 2, 4, 2), m.tensor(2, 4), driver="gels")
    yield call(spread(m, 2, 4), m.tensor(2, 1))
    yield call(spread(m, 2, 3, 2), m.tensor(1, 3, 2), 1e-4, driver="gelsd")
    yield call(spread(m, 3, 3), m.tensor(3, 1), driver="gelss")
    yield call(m.tensor(4, 0), m.tensor(4, 2))
    yield call(m.tensor(0, 3), m.tensor(0, 2))
    yield call(spread(m, 3, 2), m.tensor(2, 1))
    yield call(spread(m, 3, 2), m.tensor(3, 1), driver="other")


@sample("eig")
def eig(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 2, 2))
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))


def taus(m, *shape: int) -> T:
    return m.tensor(*shape, low=0, high=1)


@sample("householder")
def householder(m):
    yield call(m.tensor(3, 3, low=-1, high=1), taus(m, 3))
    yield call(m.tensor(2, 4, 3, low=-1, high=1), taus(m, 2, 2))
    yield call(m.tensor(2, 0), taus(m, 0))
    yield call(m.tensor(2, 3), taus(m, 2))
    yield call(m.tensor(3, 2), taus(m, 3))
    yield call(m.tensor(2, 3, 2), taus(m, 2))


@sample("geqrf")
def geqrf(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 4, 2))
    yield call(spread(m, 2, 3))
    yield call(m.tensor(3, 0))
    yield call(m.tensor(3))


@sample("ormqr")
def ormqr(m):
    yield call(m.tensor(4, 3, low=-1, high=1), taus(m, 3), m.tensor(4, 2))
    yield call(m.tensor(2, 4, 3, low=-1, high=1), taus(m, 2, 3), m.tensor(2, 2, 4), False, True)
    yield call(m.tensor(2, 3, low=-1, high=1), taus(m, 2), m.tensor(2, 2), True, True)
    yield call(m.tensor(4, 3), taus(m, 3), m.tensor(2, 4))
    yield call(m.tensor(4, 3), taus(m, 2), m.tensor(4, 2))


@sample("triangular_solve")
def triangular_solve(m):
    yield call(m.tensor(3, 2), regular(m, 3, 3))
    yield call(m.tensor(2, 3, 2), regular(m, 3, 3), False, True)
    yield call(m.tensor(3, 2), m.tensor(3, 3, low=-1, high=1), True, True, True)
    yield call(m.tensor(2, 2), regular(m, 3, 3))
    yield call(m.tensor(3), regular(m, 3, 3))


@sample("matrix_exp")
def matrix_exp(m):
    if m.dtype in ("float16", "bfloat16"):
        return  # PyTorch 2.13 gives numbers near 1e30 for the exponential of small matrices
    yield call(m.tensor(3, 3, low=-0.4, high=0.4))
    yield call(m.tensor(2, 2, 2, low=-2, high=1))
    yield call(m.tensor(1, 1, low=0, high=1))
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))


@sample("ldl_factor_ex")
def ldl_factor_ex(m):
    yield call(hermitian(m, 3, 3))
    yield call(hermitian(m, 2, 4, 4), hermitian=True)
    yield call(T(np.array([[0, 2], [2, 0]]).astype(m.tensor(1).data.dtype), m.dtype))
    yield call(T(np.zeros((2, 2), m.tensor(1).data.dtype), m.dtype))
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))


@sample("ldl_factor")
def ldl_factor(m):
    yield call(hermitian(m, 3, 3))
    yield call(T(np.zeros((2, 2), m.tensor(1).data.dtype), m.dtype))


@sample("ldl_solve")
def ldl_solve(m):
    yield call(regular(m, 3, 3), pivots([1, 2, 3]), m.tensor(3, 2))
    yield call(regular(m, 2, 3, 3), pivots([1, 3, 3], [2, 2, 3]), m.tensor(3, 2), hermitian=True)
    yield call(regular(m, 2, 2), pivots([1, 2]), m.tensor(3, 2, 1))
    yield call(regular(m, 3, 3), pivots([1, 2]), m.tensor(3, 2))
    yield call(regular(m, 3, 3), m.tensor(3, dtype="float32"), m.tensor(3, 2))
