"""Samples of softmax, of normalisations, and of vector norms."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


@sample("softmax")
def softmax(m):
    yield call(m.tensor(3, 5), 1)
    yield call(m.tensor(2, 3, 4), 0)
    yield call(m.tensor(), 0)
    yield call(m.tensor(0, 3), 1)
    yield call(m.tensor(2, 20), -1, D("float64"))
    yield call(m.tensor(2, 3), 2)
    if m.is_float:
        yield call(T(np.array([[np.inf, 1.0], [-np.inf, -np.inf], [80.0, -80.0]], np.float32), m.dtype), 1)


@sample("softmax_core")
def softmax_core(m):
    yield call(m.tensor(3, 5), 1, False)
    yield call(m.tensor(2, 3, 4), 1, False)


@sample("softmax_backward")
def softmax_backward(m):
    d = D(m.dtype)
    yield call(m.tensor(3, 5), m.tensor(3, 5, low=0.1, high=0.9), 1, d)
    yield call(m.tensor(2, 3, 4), m.tensor(2, 3, 4, low=0.1, high=0.9), 0, d)


def vectors(m, *shape, weight=True, bias=True):
    return m.tensor(*shape, low=0.5, high=2) if weight else None, m.tensor(*shape, low=-1, high=1) if bias else None


@sample("layer_norm")
def layer_norm(m):
    yield call(m.tensor(3, 5), [5])
    yield call(m.tensor(3, 5), [5], *vectors(m, 5))
    yield call(m.tensor(2, 3, 4), [3, 4], *vectors(m, 3, 4, bias=False), 0.5)
    yield call(m.tensor(0, 4), [4], *vectors(m, 4))
    yield call(m.tensor(3, 5), [4])
    yield call(m.tensor(3, 5), [5], m.tensor(3))
    yield call(m.tensor(3, 5), [])


@sample("native_layer_norm")
def native_layer_norm(m):
    yield call(m.tensor(3, 5), [5], *vectors(m, 5), 1e-5)
    yield call(m.tensor(2, 3, 4), [3, 4], *vectors(m, 3, 4, weight=False), 0.1)


def statistics(m, *shape):
    return m.tensor(*shape, low=-1, high=1), m.tensor(*shape, low=0.5, high=2)


@sample("native_layer_norm_backward")
def native_layer_norm_backward(m):
    yield call(m.tensor(3, 5), m.tensor(3, 5), [5], *statistics(m, 3, 1), *vectors(m, 5), [True, True, True])
    yield call(m.tensor(3, 5), m.tensor(3, 5), [5], *statistics(m, 3, 1), None, None, [True, False, False])


@sample("group_norm")
def group_norm(m):
    yield call(m.tensor(2, 4, 3), 2)
    yield call(m.tensor(2, 4, 3), 4, *vectors(m, 4))
    yield call(m.tensor(2, 6, 2, 2), 3, *vectors(m, 6, bias=False), 0.2)
    yield call(m.tensor(2, 4, 3), 3)
    yield call(m.tensor(2, 4, 3), 2, m.tensor(3))
    yield call(m.tensor(4), 2)


@sample("native_group_norm")
def native_group_norm(m):
    yield call(m.tensor(2, 4, 3), *vectors(m, 4), 2, 4, 3, 2, 1e-5)
    yield call(m.tensor(1, 4, 2), None, None, 1, 4, 2, 1, 0.1)


@sample("native_group_norm_backward")
def native_group_norm_backward(m):
    yield call(m.tensor(2, 4, 3), m.tensor(2, 4, 3), *statistics(m, 2, 2), m.tensor(4), 2, 4, 3, 2, [True, True, True])
    yield call(m.tensor(2, 4, 3), m.tensor(2, 4, 3), *statistics(m, 2, 2), None, 2, 4, 3, 2, [True, False, False])


@sample("rms_norm")
def rms_norm(m):
    yield call(m.tensor(3, 5, away=0.5), [5])
    yield call(m.tensor(3, 5), [5], m.tensor(5), 0.1)
    yield call(m.tensor(2, 3, 4), [3, 4], None, 1e-3)
    yield call(m.tensor(3, 5), [3])


@sample("rms_norm_core")
def rms_norm_core(m):
    if not m.is_complex:  # rms_norm composes complex ones
        yield call(m.tensor(3, 5), [5], m.tensor(5, low=0.5, high=2), 0.1)
        yield call(m.tensor(2, 3, 4), [3, 4], None, 1e-3)


@sample("rms_norm_backward")
def rms_norm_backward(m):
    scale = m.tensor(3, 1, low=0.5, high=2)
    yield call(m.tensor(3, 5), m.tensor(3, 5), [5], scale, m.tensor(5), [True, True])
    yield call(m.tensor(3, 5), m.tensor(3, 5), [5], scale, None, [True, False])


def running(m, c):
    return m.tensor(c, low=-1, high=1), m.tensor(c, low=0.5, high=2)


@sample("batch_norm")
def batch_norm(m):
    yield call(m.tensor(5, 3), *vectors(m, 3), *running(m, 3), True, 0.1, 1e-5, False)
    yield call(m.tensor(4, 3, 2), None, None, None, None, True, 0.5, 0.1, False)
    yield call(m.tensor(4, 3, 2), *vectors(m, 3), *running(m, 3), False, 0.1, 1e-5, False)
    yield call(m.tensor(2, 3, 2, 2), m.tensor(3, low=0.5, high=2), None, *running(m, 3), False, 0.1, 1e-3, False)
    yield call(m.tensor(4, 3), None, None, None, None, False, 0.1, 1e-5, False)
    yield call(m.tensor(4, 3), m.tensor(2), None, None, None, True, 0.1, 1e-5, False)


@sample("native_batch_norm")
def native_batch_norm(m):
    yield call(m.tensor(5, 3), *vectors(m, 3), *running(m, 3), True, 0.1, 1e-5)
    yield call(m.tensor(4, 3, 2), *vectors(m, 3), *running(m, 3), False, 0.1, 1e-3)


@sample("functional_batch_norm")
def functional_batch_norm(m):
    yield call(m.tensor(5, 3), *vectors(m, 3), *running(m, 3), True, 0.1, 1e-5)
    yield call(m.tensor(4, 3, 2), None, None, *running(m, 3), False, 0.1, 1e-3)


@sample("native_batch_norm_backward")
def native_batch_norm_backward(m):
    x, saved = m.tensor(5, 3), statistics(m, 3)
    yield call(m.tensor(5, 3), x, m.tensor(3), *running(m, 3), *saved, True, 1e-5, [True, True, True])
    yield call(m.tensor(5, 3), x, m.tensor(3), *running(m, 3), *saved, False, 1e-5, [True, True, True])


@sample("instance_norm")
def instance_norm(m):
    yield call(m.tensor(2, 3, 5), *vectors(m, 3), None, None, True, 0.1, 1e-5, False)
    yield call(m.tensor(2, 3, 4), None, None, *running(m, 3), True, 0.2, 0.1, False)
    yield call(m.tensor(2, 3, 4), *vectors(m, 3), *running(m, 3), False, 0.1, 1e-5, False)


@sample("vector_norm")
def vector_norm(m):
    for order in (2, 1, 0, 3.5, -1, float("inf"), -float("inf")):
        yield call(m.tensor(3, 5, away=0.3), order)
    yield call(m.tensor(2, 3, 4), 2, [0, 2])
    yield call(m.tensor(2, 3, 4), 3, [1], True)
    yield call(m.tensor(0, 3), 2, [0])
    yield call(m.tensor(0, 3), float("inf"), [0])
    yield call(m.tensor(3), 2, [1])
    yield call(m.tensor(2, 19), 2, [1], dtype=D("complex128" if m.is_complex else "float64"))


@sample("norm_scalar")
def norm_scalar(m):
    for order in (2, 1, 0, 3):
        yield call(m.tensor(3, 5, away=0.3), order)
    yield call(m.tensor())


@sample("norm_dim")
def norm_dim(m):
    yield call(m.tensor(2, 3, 4), 2, [1])
    yield call(m.tensor(2, 3, 4), None, [0, 2], True)
    yield call(m.tensor(3, 5, away=0.3), float("inf"), [-1])


@sample("norm_dtype")
def norm_dtype(m):
    if not m.is_complex:  # PyTorch's operator takes no dtype for complex tensors, real or complex
        yield call(m.tensor(3, 5), 2, dtype=D("float64"))
        yield call(m.tensor(3, 5, away=0.3), 1, dtype=D("float64"))


@sample("norm_dim_dtype")
def norm_dim_dtype(m):
    if not m.is_complex:
        yield call(m.tensor(2, 3, 4), 2, [1], False, dtype=D("float64"))
        yield call(m.tensor(2, 3, 4, away=0.3), 3, [0, 2], True, dtype=D("float64"))
