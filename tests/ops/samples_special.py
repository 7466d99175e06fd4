"""Samples of the special functions."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample
from samples_pointwise import pairs, shapes


@sample("special_unary")
def special_unary(m):
    yield from shapes(m)
    if m.is_float:
        yield call(T(np.array([np.nan, 0.0, -0.0, 1e-30, 7.9, 8.1, 20.0], np.float64 if m.dtype == "float64" else np.float32), m.dtype))


@sample("special_positive")
def special_positive(m):
    yield from shapes(m, low=0.1, high=9)
    if m.is_float:
        yield call(T(np.array([np.nan, 0.0, 1e-20, 4.9, 5.1, 30.0], np.float64 if m.dtype == "float64" else np.float32), m.dtype))


@sample("special_oscillating")
def special_oscillating(m):
    """Not between 5 and 7, where PyTorch's own float64 results are good to 1e-7 only."""
    yield from shapes(m, low=0.1, high=4.9)
    if m.is_float:
        yield call(T(np.array([np.nan, 0.0, 1e-20, 4.9, 9.5, 30.0], np.float64 if m.dtype == "float64" else np.float32), m.dtype))


@sample("special_airy")
def special_airy(m):
    """Not below -2, where PyTorch's own float64 results are good to 1e-6 only."""
    yield from shapes(m, low=-2, high=4)
    if m.is_float:
        yield call(T(np.array([np.nan, 0.0, -0.0, 7.9, 20.0], np.float64 if m.dtype == "float64" else np.float32), m.dtype))


@sample("special_fraction")
def special_fraction(m):
    yield from shapes(m, low=0.01, high=0.99)
    if m.is_float:
        yield call(T(np.array([np.nan, 0.0, 1.0, 1e-20, 0.5, -1.0], np.float64 if m.dtype == "float64" else np.float32), m.dtype))


@sample("polygamma")
def polygamma(m):
    for n in (0, 1, 2, 3, 5):
        yield call(n, m.tensor(3, 4, low=0.5, high=9))
        yield call(n, m.tensor(2, low=1, high=9))
    yield call(4, m.tensor(0, 3))
    yield call(-1, m.tensor(2))


@sample("polygamma_")
def polygamma_(m):
    for n in (0, 1, 2, 4):
        yield call(m.tensor(3, 4, low=0.5, high=9), n)


@sample("zeta")
def zeta(m):
    yield from pairs(m, {"low": 1.3, "high": 9}, {"low": 0.3, "high": 9})


@sample("zeta_self_number")
def zeta_self_number(m):
    for s in (2.0, 3, 7.5):
        yield call(s, m.tensor(3, 4, low=0.3, high=9))


@sample("zeta_other_number")
def zeta_other_number(m):
    for q in (1.0, 2, 0.75):
        yield call(m.tensor(3, 4, low=1.3, high=9), q)


def degrees(m, *shape):
    """Low ones: in float32 PyTorch adds up in float32, and alternating terms cancel."""
    return m.integers(*shape, low=-1, high=6)


@sample("polynomial")
def polynomial(m):
    yield call(m.tensor(3, 4, low=-1.5, high=1.5), degrees(m, 3, 4))
    yield call(m.tensor(3, 1, low=-1.5, high=1.5), degrees(m, 4))
    yield call(m.tensor(low=-1.5, high=1.5), degrees(m, 5))
    yield call(m.tensor(0, 3), degrees(m, 3))
    if m.is_float:
        yield call(T(np.array([[0.0], [1.0], [-1.0]], np.float32), m.dtype), degrees(m, 6))


@sample("polynomial_x_number")
def polynomial_x_number(m):
    for x in (0.5, 1, -1.25):
        yield call(x, m.tensor(3, 4, low=0, high=5))


@sample("polynomial_n_number")
def polynomial_n_number(m):
    for n in (0, 1, 5):
        yield call(m.tensor(3, 4, low=-1.5, high=1.5), n)


@sample("igamma")
def igamma(m):
    yield from pairs(m, {"low": 0.1, "high": 9}, {"low": 0.1, "high": 9})
    if m.is_float:
        yield call(T(np.array([0.0, 1.0, 1.0, 60.0, 2.0, np.nan], np.float32), m.dtype), T(np.array([1.0, 0.0, np.inf, 50.0, 30.0, 1.0], np.float32), m.dtype))
