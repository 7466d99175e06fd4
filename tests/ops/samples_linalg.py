"""Samples of norms, products and powers of matrices."""

from __future__ import annotations

from kit import D, call, sample
from samples_decompose import regular

INF = float("inf")


@sample("linalg_norm")
def linalg_norm(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(5), 3)
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(3, 4), INF, keepdim=True)
    yield call(m.tensor(2, 3, 4), -1, [0, 2])
    yield call(m.tensor(2, 3, 4), 0, [1])
    yield call(m.tensor(2, 3, 4), None, [1, 2], True)
    yield call(m.tensor(2, 3, 4), 2)
    yield call(m.tensor(2, 3, 4), 2, [0, 1, 2])


@sample("linalg_norm_named")
def linalg_norm_named(m):
    yield call(m.tensor(3, 4), "fro")
    yield call(m.tensor(2, 3, 4), "fro", [0, 2], True)
    yield call(m.tensor(2, 3, 4), "fro")
    yield call(m.tensor(3, 4), "other")


@sample("linalg_matrix_norm")
def linalg_matrix_norm(m):
    for order in (1, -1, INF, -INF, 2, -2):
        yield call(m.tensor(2, 3, 4), order)
    yield call(m.tensor(2, 3, 4), 2, [2, 0], True)
    yield call(m.tensor(0, 3), 2)
    yield call(m.tensor(0, 0), INF)
    yield call(m.tensor(2, 3, 4), 1, [0, 2], True)
    yield call(m.tensor(2, 3, 4), INF, [2, 0])
    yield call(m.tensor(3, 4), 3)
    yield call(m.tensor(3), 1)
    yield call(m.tensor(3, 3), 1, [0, 0])


@sample("linalg_matrix_norm_named")
def linalg_matrix_norm_named(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), "fro", [0, 1], True)
    yield call(m.tensor(2, 3, 4), "nuc", [0, 1], True)
    yield call(m.tensor(2, 3, 4), "nuc", [2, 0])
    if m.is_float:
        yield call(m.tensor(3, 4), "fro", dtype=D("float64"))
    yield call(m.tensor(3, 4), "other")


@sample("linalg_vecdot")
def linalg_vecdot(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 4), m.tensor(3, 1), dim=0)
    yield call(m.tensor(3), m.tensor(4))


@sample("linalg_diagonal")
def linalg_diagonal(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), offset=1, dim1=0, dim2=2)
    yield call(m.tensor(3))


@sample("linalg_multi_dot")
def linalg_multi_dot(m):
    yield call([m.tensor(2, 3), m.tensor(3, 4)])
    yield call([m.tensor(2, 3), m.tensor(3, 4), m.tensor(4, 2), m.tensor(2, 1)])
    yield call([m.tensor(3), m.tensor(3, 4), m.tensor(4)])
    yield call([m.tensor(2, 3)])
    yield call([m.tensor(2, 3), m.tensor(2, 3)])


@sample("matrix_power")
def matrix_power(m):
    for n in (0, 1, 2, 5):
        yield call(m.tensor(3, 3, low=-1, high=1), n)
    yield call(m.tensor(2, 3, 3, low=-1, high=1), 3)
    yield call(regular(m, 2, 3, 3), -1)
    yield call(regular(m, 3, 3), -3)
    yield call(m.tensor(2, 3), 2)


@sample("linalg_vander")
def linalg_vander(m):
    yield call(m.tensor(3))
    yield call(m.tensor(2, 3), N=4)
    yield call(m.tensor(3), N=1)
