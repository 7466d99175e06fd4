"""Samples of losses."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample

REDUCTIONS = (0, 1, 2)


def two(m, *more, first=None, second=None):
    """Prediction and target of one shape, broadcast and empty ones, in every reduction."""
    first, second = first or {}, second or {}
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4, **first), m.tensor(3, 4, **second), reduction, *more)
    yield call(m.tensor(**first), m.tensor(**second), 1, *more)
    yield call(m.tensor(0, 3, **first), m.tensor(0, 3, **second), 2, *more)


@sample("loss")
def loss(m):
    yield from two(m)


@sample("smooth_l1")
def smooth_l1(m):
    if m.op.startswith("strata"):
        yield call(m.tensor(3, 4), m.tensor(3, 4), 0.7)
        return
    yield from two(m)
    yield from two(m, 2.5)
    yield call(m.tensor(3), m.tensor(3), 1, -1.0)


@sample("at_least")
def at_least(m):
    yield call(m.tensor(3, 4), 0.25)


@sample("huber")
def huber(m):
    if m.op.startswith("strata"):
        yield call(m.tensor(3, 4), m.tensor(3, 4), 1.3)
        return
    yield from two(m, 2.5)
    yield call(m.tensor(3), m.tensor(3), 1, 0.0)


PROBABILITY = {"low": 0.05, "high": 0.95}


@sample("bce")
def bce(m):
    yield call(m.tensor(3, 4, **PROBABILITY), m.tensor(3, 4, low=0, high=1))


@sample("bce_loss")
def bce_loss(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4, **PROBABILITY), m.tensor(3, 4, **PROBABILITY), None, reduction)
    yield call(m.tensor(3, 4, **PROBABILITY), m.tensor(3, 4, **PROBABILITY), m.tensor(3, 4, low=0.5, high=2), 0)
    yield call(m.tensor(3, low=2, high=4), m.tensor(3), None, 1)


@sample("bce_logits")
def bce_logits(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4, low=0, high=1))


@sample("bce_logits_weighted")
def bce_logits_weighted(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4, low=0, high=1), m.tensor(4, low=0.5, high=2))


@sample("bce_logits_loss")
def bce_logits_loss(m):
    target = {"low": 0, "high": 1}
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), m.tensor(3, 4, **target), None, None, reduction)
    yield call(m.tensor(3, 4), m.tensor(3, 4, **target), m.tensor(3, 4, low=0.5, high=2), m.tensor(4, low=0.5, high=2), 2)


@sample("kl_div")
def kl_div(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), m.tensor(3, 4, **PROBABILITY), reduction)
    yield call(m.tensor(3, 4), m.tensor(3, 4), 1, log_target=True)


@sample("poisson_nll")
def poisson_nll(m):
    for log_input in (True, False):
        for full in (True, False):
            yield call(m.tensor(3, 4, low=0.5, high=2), m.tensor(3, 4, low=0.5, high=4), log_input, full, 1e-8, 1)
    yield call(m.tensor(3, low=0.5, high=2), m.tensor(3, low=0.5, high=4), True, False, 1e-8, 0)


def signs(m, *shape):
    values = np.where(m.random.random(shape) < 0.5, -1, 1)
    return T(np.asarray(values, np.float32 if m.is_float or m.is_complex else np.int64), m.dtype)


@sample("soft_margin")
def soft_margin(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), signs(m, 3, 4), reduction)


@sample("cosine_embedding")
def cosine_embedding(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), m.tensor(3, 4), signs(m, 3), 0.1, reduction)
    yield call(m.tensor(4), m.tensor(4), signs(m), 0.0, 1)
    yield call(m.tensor(3, 4), m.tensor(3, 4), signs(m, 3, 1), 0.0, 1)


@sample("hinge_embedding")
def hinge_embedding(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), signs(m, 3, 4), 1.5, reduction)


@sample("margin_ranking")
def margin_ranking(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(5), m.tensor(5), signs(m, 5), 0.25, reduction)


@sample("triplet_margin")
def triplet_margin(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(3, 4), m.tensor(3, 4), m.tensor(3, 4), 1.0, 2.0, 1e-6, False, reduction)
    yield call(m.tensor(3, 4), m.tensor(3, 4), m.tensor(3, 4), 6.0, 3.0, 1e-6, True, 0)
    yield call(m.tensor(3, 4), m.tensor(4), m.tensor(3, 4))


@sample("pairwise_distance")
def pairwise_distance(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 4), m.tensor(4), 1.0, 1e-3, True)


@sample("cosine_similarity")
def cosine_similarity(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(2, 3, 4), m.tensor(3, 4), -1, 1e-6)
    yield call(m.tensor(3, 4), T(np.zeros((3, 4), np.float32), m.dtype), 0)


# ---- over classes


def classes(m, *shape, high):
    return m.integers(*shape, low=0, high=high)


def weights(m, c):
    return m.tensor(c, low=0.5, high=2)


@sample("nll_loss")
def nll_loss(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(5, 3), classes(m, 5, high=3), None, reduction)
        yield call(m.tensor(5, 3), classes(m, 5, high=3), weights(m, 3), reduction, 1)
    yield call(m.tensor(3), classes(m, high=3))
    yield call(m.tensor(5, 3), classes(m, 4, high=3))
    yield call(m.tensor(5, 3), T(np.full(5, 3), "int64"))
    yield call(m.tensor(5, 3), classes(m, 5, high=3), weights(m, 2))


@sample("nll_loss_forward")
def nll_loss_forward(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(5, 3), classes(m, 5, high=3), weights(m, 3), reduction, -100)
    yield call(m.tensor(5, 3), classes(m, 5, high=3), None, 1, 2)


@sample("of_classes")
def of_classes(m):
    yield call(m.tensor(5, 3), 1, classes(m, 5, high=3))
    yield call(m.tensor(3), -1, classes(m, high=3))
    yield call(m.tensor(2, 3, 2, 4), 1, classes(m, 2, 2, 4, high=3))
    yield call(m.tensor(5, 3), 1, T(np.full(5, 3), "int64"))
    yield call(m.tensor(0, 3), 1, classes(m, 0, high=3))


@sample("nll_loss_backward")
def nll_loss_backward(m):
    total = T(np.asarray(5, m.tensor().data.dtype), m.dtype)  # of five samples of weight 1
    yield call(m.tensor(), m.tensor(5, 3), classes(m, 5, high=3), None, 1, -100, total)
    yield call(m.tensor(), m.tensor(5, 3), classes(m, 5, high=3), weights(m, 3), 2, -100, total)
    yield call(m.tensor(5), m.tensor(5, 3), classes(m, 5, high=3), None, 0, 1, total)


@sample("nll_log_softmax_backward")
def nll_log_softmax_backward(m):
    total = T(np.asarray(4, m.tensor().data.dtype), m.dtype)
    yield call(m.tensor(), m.tensor(5, 3), classes(m, 5, high=3), None, 1, -100, total)
    yield call(m.tensor(5), m.tensor(5, 3), classes(m, 5, high=3), weights(m, 3), 0, 1, total)
    yield call(m.tensor(), m.tensor(2, 3, 2, 4), classes(m, 2, 2, 4, high=3), weights(m, 3), 1, 2, total)
    yield call(m.tensor(), m.tensor(3), classes(m, high=3), None, 2, -100, total)
    yield call(m.tensor(), m.tensor(5, 1), classes(m, 5, high=1), None, 1, -100, total)
    yield call(m.tensor(), m.tensor(0, 3), classes(m, 0, high=3), None, 1, -100, total)
    yield call(m.tensor(), m.tensor(5, 3), T(np.full(5, 3), "int64"), None, 1, -100, total)
    yield call(m.tensor(4), m.tensor(5, 3), classes(m, 5, high=3), None, 0, -100, total)


@sample("nll_loss2d")
def nll_loss2d(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(2, 3, 2, 2), classes(m, 2, 2, 2, high=3), weights(m, 3), reduction)
    yield call(m.tensor(2, 3, 2, 2), classes(m, 2, 2, 2, high=3), None, 1, 0)
    yield call(m.tensor(2, 3, 2, 2), classes(m, 2, 2, 3, high=3))


@sample("nll_loss2d_forward")
def nll_loss2d_forward(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(2, 3, 2, 2), classes(m, 2, 2, 2, high=3), weights(m, 3), reduction, -100)


@sample("nll_loss_nd")
def nll_loss_nd(m):
    yield call(m.tensor(5, 3), classes(m, 5, high=3))
    yield call(m.tensor(2, 3, 2, 2), classes(m, 2, 2, 2, high=3), weights(m, 3), 2)
    yield call(m.tensor(2, 3, 2, 2, 2), classes(m, 2, 2, 2, 2, high=3), None, 0)
    yield call(m.tensor(2, 3, 4), classes(m, 2, 4, high=3), None, 1, 1)


@sample("cross_entropy")
def cross_entropy(m):
    for reduction in REDUCTIONS:
        yield call(m.tensor(5, 3), classes(m, 5, high=3), weights(m, 3), reduction)
    yield call(m.tensor(5, 3), classes(m, 5, high=3), None, 1, 1, 0.2)
    yield call(m.tensor(5, 3), m.tensor(5, 3, low=0.1, high=0.6), weights(m, 3), 1, -100, 0.1)
    yield call(m.tensor(2, 3, 4), classes(m, 2, 4, high=3), weights(m, 3), 1, -100, 0.3)
    yield call(m.tensor(3), classes(m, high=3))
    yield call(m.tensor(5, 3), classes(m, 5, high=3), None, 1, -100, 1.5)


@sample("multi_margin")
def multi_margin(m):
    for reduction in REDUCTIONS:
        yield call(m.distinct(3, 4), m.integers(3, high=4), 1, 1.5, None, reduction)
        yield call(m.distinct(4), m.integers(high=4), 2, 1, None, reduction)
    yield call(m.distinct(3, 4), m.integers(3, high=4), 2, 0.3, m.tensor(4, low=0.5), 0)
    yield call(m.distinct(4), m.integers(1, high=4), 1, 1, None, 0)
    yield call(m.distinct(3, 4), m.integers(3, high=4), 3)
    yield call(m.distinct(3, 4), m.integers(2, high=4))
    yield call(m.distinct(2, 3, 4), m.integers(2, high=4))
    yield call(m.distinct(3, 4), m.integers(3, high=4), 1, 1, m.tensor(3))
    if m.dtype in ("float32", "float64"):  # others are refused for their dtype
        yield call(m.distinct(3, 4), m.integers(3, low=4, high=6))


@sample("multilabel_margin")
def multilabel_margin(m):
    classes = T(np.array([[0, 3, -1, 1], [2, -1, 0, 0], [-1, 1, 2, 3], [3, 2, 1, 0]]), "int64")
    for reduction in REDUCTIONS:
        yield call(m.distinct(4, 4), classes, reduction)
        yield call(m.distinct(4), m.integers(4, high=4), reduction)
    yield call(m.distinct(3, 4), classes)
    yield call(m.distinct(1, 4, 4), T(classes.data[None], "int64"))
    if m.dtype in ("float32", "float64"):
        yield call(m.distinct(4, 4), T(classes.data + 4, "int64"))
