"""Samples of connectionist temporal classification."""

from __future__ import annotations

import numpy as np
import reference_ctc
from kit import T, call, sample


def logs(m, *shape: int) -> T:
    """Logarithms of probabilities over the last dim."""
    made = m.tensor(*shape)
    if m.is_float:
        made.data = made.data - np.log(np.exp(made.data.astype(np.float64)).sum(-1, keepdims=True)).astype(made.data.dtype)
    return made


def lengths(*values: int, dtype: str = "int64") -> T:
    return T(np.array(values, dtype), dtype)


def problems(m):
    """log_probs, targets, lengths of both, and more arguments."""
    yield logs(m, 6, 2, 4), m.integers(2, 3, low=1, high=4), lengths(6, 4), lengths(3, 1), 0
    yield logs(m, 6, 2, 4), T(np.array([[1, 1, 2], [3, 3, 3]]), "int64"), lengths(5, 6), lengths(2, 3), 0
    yield logs(m, 6, 3, 4), m.integers(4, low=1, high=4), lengths(6, 4, 2), lengths(3, 0, 1, dtype="int32"), 0
    yield logs(m, 5, 2, 3), m.integers(2, 2, low=0, high=2, dtype="int32"), lengths(5, 3), lengths(2, 1), 2
    yield logs(m, 3, 2, 3), m.integers(2, 3, low=1, high=3), lengths(0, 3), lengths(0, 1), 0
    yield logs(m, 3, 1, 1), m.integers(1, 0), lengths(2), lengths(0), 0


def refused(m):
    if m.dtype not in ("float32", "float64"):
        return
    given = logs(m, 5, 2, 4), m.integers(2, 3, low=1, high=4), lengths(5, 4), lengths(3, 2)
    yield *given, 7
    yield *given, -1
    yield *given[:2], lengths(6, 4), given[3], 0
    yield *given[:2], lengths(5, -1), given[3], 0
    yield *given[:3], lengths(4, 2), 0
    yield *given[:3], lengths(3), 0
    yield *given[:2], lengths(5), given[3], 0
    yield *given[:2], T(np.array([5.0, 4.0], np.float32), "float32"), given[3], 0
    yield given[0], m.integers(1, 3, low=1), *given[2:], 0
    yield given[0], m.integers(4, low=1), *given[2:], 0
    yield given[0], m.integers(1, 2, 3, low=1), *given[2:], 0
    yield logs(m, 0, 2, 4), given[1], lengths(0, 0), given[3], 0


@sample("ctc_loss")
def ctc_loss(m):
    for reduction in range(3):
        for given in problems(m):
            yield call(*given, reduction)
        yield call(logs(m, 2, 2, 4), T(np.array([[1, 2, 3], [1, 2, 3]]), "int64"), lengths(2, 2), lengths(3, 2), 0, reduction, True)
        yield call(logs(m, 2, 2, 4), T(np.array([[1, 2, 3], [1, 2, 3]]), "int64"), lengths(2, 0), lengths(3, 2), 0, reduction)
        yield call(logs(m, 4, 3), m.integers(2, low=1), lengths(4), lengths(2), 0, reduction)
    yield call(logs(m, 4, 3), m.integers(1, 2, low=1), T(np.array(4), "int64"), T(np.array(2), "int64"), 0, 0)
    for given in refused(m):
        yield call(*given)


@sample("ctc_losses")
def ctc_losses(m):
    for given in problems(m):
        yield call(*given)
    yield call(logs(m, 2, 2, 4), T(np.array([[1, 2, 3], [1, 2, 3]]), "int64"), lengths(2, 0), lengths(3, 2), 0)
    if m.dtype == "float32":
        yield call(logs(m, 4, 3), m.integers(1, 2, low=1), lengths(4), lengths(2), 0)


@sample("ctc_loss_backward")
def ctc_loss_backward(m):
    def states(given):
        if not m.is_float:
            return m.tensor(2), m.tensor(2, 6, 7)
        losses, alpha = reference_ctc.ctc_losses(*(a.data if isinstance(a, T) else a for a in given))
        return [T(a.astype(given[0].data.dtype), m.dtype) for a in (losses, alpha)]

    for given in problems(m):
        yield call(m.tensor(given[0].data.shape[1]), *given[:4], *states(given), given[4], False)
    given = logs(m, 2, 2, 4), T(np.array([[1, 2, 3], [1, 2, 3]]), "int64"), lengths(2, 2), lengths(3, 2), 0
    yield call(m.tensor(2), *given[:4], *states(given), 0, True)
    if m.dtype == "float32":
        yield call(m.tensor(3), *given[:4], *states(given), 0, True)
