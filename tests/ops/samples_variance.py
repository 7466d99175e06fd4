"""Samples of means, products, extrema and variances."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


@sample("reduce_all_float")
def reduce_all_float(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor())
    yield call(m.tensor(0))
    yield call(m.tensor(2, 40), dtype=D("float64"))


@sample("reduce_dims_float")
def reduce_dims_float(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(2, 3, 4), [0, -1], True)
    yield call(m.tensor(3, 33), None)
    yield call(m.tensor(3, 5), [1], dtype=D("float64"))
    yield call(m.tensor(3, 5), [0, 0])
    yield call(m.tensor(3, 5), [2])


@sample("reduce_dims_required")
def reduce_dims_required(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(2, 3, 4), [0, -1], True)
    yield call(m.tensor(0, 3), [0])
    yield call(m.tensor(), [0])
    if m.is_float:
        yield call(T(np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 0], [1000, 1001]], np.float32), m.dtype), [1])


@sample("reduce_dims_nan")
def reduce_dims_nan(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(2, 3, 4), [0, -1], True)
    if m.is_float:
        yield call(T(np.array([[np.nan, 1], [2, 3]], np.float32), m.dtype), [1])
        yield call(T(np.array([[np.nan, 1], [2, 3]], np.float32), m.dtype))


@sample("reduce_all_product")
def reduce_all_product(m):
    yield call(m.tensor(3, 2, low=-2, high=3))
    yield call(m.tensor())
    yield call(m.tensor(0))
    yield call(T(np.array([2, 0, 3, 0, 1][:4]).astype("float32" if m.is_float else m.dtype), m.dtype))
    yield call(T(np.array([2, 0, 3, 1]).astype("float32" if m.is_float else m.dtype), m.dtype))


@sample("reduce_dim_product")
def reduce_dim_product(m):
    yield call(m.tensor(3, 4, low=-2, high=3), 0)
    yield call(m.tensor(3, 4, low=-2, high=3), -1, True)
    yield call(m.tensor(), 0)
    yield call(T(np.array([[2, 0, 3], [0, 0, 1], [1, 2, 3]]).astype("float32" if m.is_float else m.dtype), m.dtype), 1)
    yield call(m.tensor(3, 4), 2)


@sample("reduce_dim")
def reduce_dim(m):
    yield call(m.distinct(3, 5), 0)
    yield call(m.distinct(3, 5), -1, True)
    yield call(m.tensor(), 0)
    yield call(m.distinct(2, 40), 1)
    yield call(m.tensor(2, 3), 2)
    yield call(m.tensor(0, 3), 0)
    if m.is_float:
        yield call(T(np.array([[1, np.nan, 3, np.nan], [1, 4, -np.inf, np.inf]], np.float32), m.dtype), 1)


@sample("reduce_optional_dim")
def reduce_optional_dim(m):
    yield call(m.distinct(3, 5))
    yield call(m.distinct(3, 5), 0)
    yield call(m.distinct(3, 5), 1, True)
    yield call(m.distinct(3, 5), None, True)
    yield call(m.tensor())
    yield call(m.tensor(0))
    yield call(m.tensor(2, 3), 2)
    if m.is_float:
        yield call(T(np.array([[1, np.nan, 3, np.nan], [1, 4, -np.inf, np.inf]], np.float32), m.dtype), 1)


@sample("reduce_optional_dim_keyword")
def reduce_optional_dim_keyword(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), dim=1)
    yield call(m.tensor(3, 5), dim=0, keepdim=True)
    if m.dtype != "bool":
        yield call(m.tensor(0))


@sample("reduce_selected")
def reduce_selected(m):
    yield call(m.tensor(3), 1, m.integers(3, high=4), [3, 4], False)
    yield call(m.tensor(3, 1), 1, m.integers(3, 1, high=4), [3, 4], True)


@sample("variance")
def variance(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(2, 3, 4), [0, -1], correction=0, keepdim=True)
    yield call(m.tensor(3, 33), None, correction=2.5)
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 1), [1])


@sample("variance_all")
def variance_all(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), False)
    yield call(m.tensor(1), False)


@sample("variance_dims")
def variance_dims(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(3, 5), [1], False, True)
    yield call(m.tensor(2, 3, 4), [0, 2])


@sample("reduce_dims_extrema")
def reduce_dims_extrema(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(2, 3, 4), [0, -1], True)
    yield call(m.tensor(3, 33), [1])
    yield call(m.tensor(3, 5), [0, 0])
    if m.dtype != "bool":
        yield call(m.tensor(0, 3), [0])
    if m.is_float:
        yield call(T(np.array([[1, np.nan], [1, 1]], np.float32), m.dtype), [1])
