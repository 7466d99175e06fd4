"""Samples of decompositions of matrices. Their matrices are far from singular, so that two libraries agree to the last
digits; float64 and complex128, which only the checks of derivatives take, have none where there is no derivative."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def moved(m, t: T, shift) -> T:
    """t with a matrix added to each of its own."""
    return T((t.data + np.asarray(shift)).astype(t.data.dtype), t.dtype)


def regular(m, *shape: int) -> T:
    """Small values and 4 on the diagonal."""
    return moved(m, m.tensor(*shape, low=-1, high=1), 4 * np.eye(shape[-2], shape[-1]))


def spread(m, *shape: int) -> T:
    """Small values and 2, 4, 6... on the diagonal: different singular values."""
    k = min(shape[-2:])
    shift = np.zeros(shape[-2:])
    shift[np.arange(k), np.arange(k)] = 2 * np.arange(1, k + 1)
    return moved(m, m.tensor(*shape, low=-1, high=1), shift)


def hermitian(m, *shape: int) -> T:
    t = spread(m, *shape)
    return T((t.data + np.conj(np.swapaxes(t.data, -1, -2))).astype(t.data.dtype), t.dtype)


def singular(m, n: int) -> T:
    t = m.tensor(n, n)
    t.data[0] = 0
    return t


def differentiable_only(m) -> bool:
    return m.dtype in ("float64", "complex128")


@sample("qr")
def qr(m):
    yield call(spread(m, 4, 3))
    yield call(spread(m, 3, 5))
    yield call(spread(m, 2, 4, 4))
    yield call(spread(m, 3, 3), "complete")
    yield call(spread(m, 3, 4), "complete")
    if not differentiable_only(m):
        yield call(m.tensor(4, 3), "complete")
        yield call(m.tensor(4, 3), "r")
        yield call(m.tensor(3, 5), "r")
        yield call(m.tensor(4, 0), "complete")
    yield call(m.tensor(0, 3, 2))
    yield call(m.tensor(3))
    yield call(m.tensor(3, 3), "full")


@sample("qr_some")
def qr_some(m):
    yield call(spread(m, 4, 3))
    yield call(spread(m, 2, 4, 3), False)
    yield call(m.tensor(3))


@sample("svd_parts")
def svd_parts(m):
    if m.dtype == "complex128":
        return  # the derivative depends on the phases of the vectors; test_linalg.py takes them out
    yield call(spread(m, 3, 3))
    yield call(spread(m, 4, 2))
    yield call(spread(m, 2, 2, 3))
    yield call(spread(m, 0, 2, 3))
    if not differentiable_only(m):
        yield call(spread(m, 4, 2), False, False)
        yield call(m.tensor(3, 0), True)
    yield call(m.tensor(3))


@sample("svd")
def svd(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 4, 3), False)
    yield call(spread(m, 0, 3))
    yield call(m.tensor(3))
    yield call(spread(m, 3, 3), driver="gesvd")


@sample("svdvals")
def svdvals(m):
    yield call(m.tensor(3, 3))
    yield call(m.tensor(2, 4, 3))
    yield call(m.tensor(3, 0))
    yield call(m.tensor(0, 2, 3))
    yield call(m.tensor(3))


@sample("svd_some")
def svd_some(m):
    yield call(spread(m, 3, 3))
    yield call(spread(m, 2, 2, 4), True)
    yield call(m.tensor(4, 2), False, False)
    yield call(m.tensor(3))


@sample("eigh_parts")
def eigh_parts(m):
    yield call(hermitian(m, 3, 3))
    yield call(hermitian(m, 2, 4, 4), "U", False)
    yield call(m.tensor(2, 3))
    yield call(hermitian(m, 3, 3), "x")


@sample("eigh")
def eigh(m):
    yield call(hermitian(m, 3, 3))
    yield call(hermitian(m, 2, 4, 4), "U")
    yield call(hermitian(m, 3, 3), "l")
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))


@sample("eigvalsh")
def eigvalsh(m):
    yield call(m.tensor(3, 3))
    yield call(m.tensor(2, 3, 3), "U")
    yield call(m.tensor(2, 0, 0))
    yield call(m.tensor(2, 3))


def positive(m, *shape: int) -> T:
    """B B^H + 4 for small B, rounded to the dtype."""
    b = m.tensor(*shape, low=-1, high=1)
    product = b.data @ np.conj(np.swapaxes(b.data, -1, -2)) if b.data.dtype != bool else b.data
    return moved(m, T(product, b.dtype), 4 * np.eye(shape[-1]))


@sample("cholesky")
def cholesky(m):
    yield call(positive(m, 3, 3))
    yield call(positive(m, 2, 4, 4), upper=True)
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))
    yield call(m.tensor(3))


@sample("cholesky_plain")
def cholesky_plain(m):
    yield call(positive(m, 3, 3))
    yield call(positive(m, 2, 4, 4), True)
    yield call(singular(m, 3))


@sample("check_info")
def check_info(m):
    yield call(T(np.zeros((3,), np.int32), "int32"), "linalg.probe", "element {}")
    yield call(T(np.zeros((), np.int32), "int32"), "linalg.probe", "element {}")
    yield call(T(np.array([0, 2, 1], np.int32), "int32"), "linalg.probe", "element {}, {}")


@sample("inverse")
def inverse(m):
    yield call(regular(m, 3, 3))
    yield call(regular(m, 2, 4, 4))
    yield call(m.tensor(0, 0))
    yield call(m.tensor(2, 3))
    yield call(m.tensor(3))


@sample("inverse_ex")
def inverse_ex(m):
    yield from inverse(m)
    yield call(regular(m, 3, 3), check_errors=True)
    yield call(singular(m, 3), check_errors=True)


@sample("determinant")
def determinant(m):
    yield from inverse(m)
    yield call(singular(m, 3))
    if not m.dtype.startswith("u"):
        yield call(moved(m, m.tensor(3, 3, low=-1, high=1), np.diag([-3, 3, 3])))


@sample("solve")
def solve(m):
    yield call(regular(m, 3, 3), m.tensor(3, 2))
    yield call(regular(m, 3, 3), m.tensor(3))
    yield call(regular(m, 2, 3, 3), m.tensor(2, 3))
    yield call(regular(m, 2, 3, 3), m.tensor(3, 2))
    yield call(regular(m, 3, 3), m.tensor(2, 3, 1))
    yield call(regular(m, 3, 3), m.tensor(2, 3), left=False)
    yield call(regular(m, 2, 1, 2, 2), m.tensor(3, 4, 2), left=False)
    yield call(regular(m, 3, 3), m.tensor(3, 0))
    yield call(regular(m, 3, 3), m.tensor(2, 2))
    yield call(regular(m, 3, 3), m.tensor(3), left=False)
    yield call(m.tensor(2, 3), m.tensor(2, 3))


@sample("solve_triangular")
def solve_triangular(m):
    yield call(regular(m, 3, 3), m.tensor(3, 2), upper=True)
    yield call(regular(m, 3, 3), m.tensor(2, 3, 2), upper=False)
    yield call(regular(m, 2, 3, 3), m.tensor(4, 3), upper=True, left=False)
    yield call(m.tensor(2, 2, low=-1, high=1), m.tensor(2, 2), upper=False, left=False, unitriangular=True)
    yield call(m.tensor(2, 2, low=-1, high=1), m.tensor(2, 3), upper=True, unitriangular=True)
    yield call(regular(m, 3, 3), m.tensor(3, 0), upper=True)
    yield call(regular(m, 3, 3), m.tensor(2, 2), upper=True)
    yield call(regular(m, 3, 3), m.tensor(3), upper=True)
