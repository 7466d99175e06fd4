"""Samples of scans, of dropout where it is certain, and of gates."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


@sample("cumsum", "cumprod")
def cumulative(m):
    yield call(m.tensor(3, 5), 0)
    yield call(m.tensor(3, 5), 1)
    yield call(m.tensor(2, 3, 4), -2)
    yield call(m.tensor(), 0)
    yield call(m.tensor(0, 3), 0)
    yield call(m.tensor(2, 5), 1, dtype=D("float64"))
    yield call(m.tensor(3), 0, dtype=D("bool"))
    yield call(m.tensor(3, 5), 2)
    if m.is_float:
        yield call(T(np.array([1.0, 0.0, np.nan, 2.0], np.float32), m.dtype), 0)


@sample("cummax")
def cummax(m):
    yield call(m.distinct(3, 5), 0)
    yield call(m.tensor(3, 6, low=0, high=3), 1)
    yield call(m.tensor(), 0)
    yield call(m.tensor(0, 3), 1)
    if m.is_float:
        yield call(T(np.array([1.0, 3.0, 3.0, np.nan, 5.0, -np.inf], np.float32), m.dtype), 0)


@sample("logcumsumexp")
def logcumsumexp(m):
    yield call(m.tensor(3, 5), 0)
    yield call(m.tensor(2, 3, 4), -1)
    yield call(m.tensor(), 0)
    if m.is_float:
        yield call(T(np.array([-np.inf, -np.inf, 90.0, 90.0, -90.0], np.float32), m.dtype), 0)


@sample("linear_scan")
def linear_scan(m):
    yield call(m.tensor(3, 5), m.tensor(3, 5), 1)
    yield call(m.tensor(3, 4), m.tensor(3, 4), 0)
    yield call(m.tensor(2, 1030, low=-1, high=1), m.tensor(2, 1030, low=-1, high=1), -1)  # longer than a block
    yield call(m.tensor(3, 0), m.tensor(3, 0), 1)


@sample("diff")
def diff(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 2, 0)
    yield call(m.tensor(3, 5), 0, 0, m.tensor(1, 5))
    yield call(m.tensor(3, 5), 1, -1, m.tensor(3, 1), m.tensor(3, 2))
    yield call(m.tensor(4), 6)
    yield call(m.tensor())
    yield call(m.tensor(3, 5), -1)


@sample("dropout", "dropout_inplace")
def dropout(m):
    """Where nothing is left to chance; test_random.py has the rest."""
    yield call(m.tensor(3, 4), 0.5, False)
    yield call(m.tensor(3, 4), 0.0, True)
    yield call(m.tensor(3, 4), 1.0, True)
    yield call(m.tensor(0, 4), 0.3, True)
    yield call(m.tensor(3, 4), 1.5, True)
    yield call(m.tensor(3, 4), -0.1, False)


@sample("native_dropout")
def native_dropout(m):
    if m.is_float:
        yield call(m.tensor(3, 4), 0.0, True)
        yield call(m.tensor(3, 4), 1.0, True)
        yield call(m.tensor(3, 4), 0.5, False)


@sample("native_dropout_backward")
def native_dropout_backward(m):
    yield call(m.tensor(3, 4), m.mask(3, 4), 2.0)
    yield call(m.tensor(3, 4), m.tensor(3, 4, dtype="float32"), 2.0)


@sample("glu")
def glu(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(4, 3), 0)
    yield call(m.tensor(2, 4, 3), 1)
    yield call(m.tensor(0, 4))
    yield call(m.tensor(3, 5))
    yield call(m.tensor())
