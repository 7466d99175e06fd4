"""Samples of order and rank. Values differ, since PyTorch says nothing of the order of equals."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def some(m, *shape):
    """Different values; of bool, one of each at most in a line."""
    if m.dtype == "bool":
        return T(np.broadcast_to(np.arange(shape[-1] if shape else 1) % 2 == 1, shape), "bool")
    return m.distinct(*shape)


def width(m, n: int) -> int:
    return 2 if m.dtype == "bool" else n


def with_nan(m) -> T:
    t = m.distinct(7)
    t.data[3] = np.nan
    return t


@sample("sort", "argsort")
def sort(m):
    for descending in (False, True):
        yield call(some(m, 3, width(m, 5)), -1, descending)
        yield call(some(m, width(m, 4)), 0, descending)
    if m.dtype != "bool":
        yield call(m.distinct(4, 3, 2), 1)
    if m.is_float:
        yield call(with_nan(m))
    yield call(m.tensor())
    yield call(m.tensor(0, 3), 1)
    yield call(m.tensor(3), 1)


@sample("sort_stable", "argsort_stable")
def sort_stable(m):
    for descending in (False, True):
        yield call(m.tensor(3, 6, low=0, high=2), stable=True, dim=-1, descending=descending)
        yield call(m.tensor(6, 3, low=0, high=2), stable=True, dim=0, descending=descending)
    yield call(m.tensor(), stable=True)


@sample("msort")
def msort(m):
    yield call(m.tensor(5, 3))
    yield call(m.tensor(4))
    yield call(m.tensor())


@sample("topk")
def topk(m):
    for largest in (True, False):
        yield call(some(m, 3, 5), 2, -1, largest)
        yield call(some(m, 6), 6, 0, largest)
    yield call(some(m, 4, 3), 0, 0)
    yield call(m.tensor(), 1)
    yield call(m.tensor(3), 4)
    yield call(m.tensor(3), -1)


@sample("kthvalue")
def kthvalue(m):
    if m.is_complex:
        return
    yield call(some(m, 3, 5), 2)
    yield call(some(m, 5, 3), 5, 0, True)
    yield call(some(m, 6), 1)
    yield call(m.tensor(), 1)
    yield call(m.tensor(3), 4)
    yield call(m.tensor(3), 0)
    yield call(m.tensor(3, 0), 1)


@sample("median")
def median(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(6))
    yield call(m.tensor())
    if m.is_float:
        yield call(with_nan(m))


@sample("median_dim")
def median_dim(m):
    yield call(some(m, 3, 5), 1)
    yield call(some(m, 4, 3), 0, True)
    yield call(m.tensor(), 0)
    if m.is_float:
        yield call(with_nan(m), 0)
    yield call(m.tensor(3, 0), 1)
    yield call(m.tensor(3), 1)


@sample("mode")
def mode(m):
    if m.is_complex:
        return
    if m.dtype != "float64":  # gradcheck moves single elements, and another value may become the mode
        yield call(T(np.asarray([[0, 1, 1], [1, 0, 1]]).astype(m.tensor().data.dtype), m.dtype))
    yield call(some(m, width(m, 3), 2), 0, True)
    yield call(m.tensor())
    yield call(m.tensor(3, 0), 1)


def few(m, *shape) -> T:
    return (
        m.integers(*shape, high=3, dtype="float32" if m.is_float else m.dtype) if m.dtype != "bool" else m.mask(*shape)
    )


def repeating(m, *shape) -> T:
    t = few(m, *shape)
    return T(t.data.astype(np.float64) if m.dtype == "float64" else t.data, m.dtype)


FLAGS = [(False, False), (True, True)]


@sample("unique")
def unique(m):
    if m.is_complex:
        return
    for inverse, counts in FLAGS:
        yield call(repeating(m, 3, 4), True, inverse, counts)
        yield call(repeating(m, 7), True, inverse, counts)
    yield call(m.tensor(), True, True, True)
    yield call(m.tensor(0), True, True, True)


@sample("unique_dim")
def unique_dim(m):
    if m.is_complex:
        return
    for inverse, counts in FLAGS:
        yield call(repeating(m, 6, 2), 0, True, inverse, counts)
        yield call(repeating(m, 2, 5), -1, True, inverse, counts)
    yield call(m.tensor(3, 0), 0)
    yield call(m.tensor(3), 1)


@sample("unique_consecutive")
def unique_consecutive(m):
    if m.is_complex:
        return
    for inverse, counts in FLAGS:
        yield call(repeating(m, 3, 4), inverse, counts)
        yield call(repeating(m, 6, 2), inverse, counts, 0)
    yield call(m.tensor(), True, True)
    yield call(m.tensor(0), True, True)


@sample("unique_dim_consecutive")
def unique_dim_consecutive(m):
    if m.is_complex:
        return
    for inverse, counts in FLAGS:
        yield call(repeating(m, 6, 2), 0, inverse, counts)
        yield call(repeating(m, 2, 5), 1, inverse, counts)
