"""Samples of gather and scatter."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def index(*values) -> T:
    return T(np.asarray(values, np.int64), "int64")


SHAPES = [  # self, dim, index, source
    ((4, 3), 0, index([0, 3, 1], [2, 0, 3]), (2, 3)),
    ((4, 3), -1, index([0], [2], [1]), (4, 3)),
    ((5,), 0, index(4, 0, 2, 0), (4,)),
    ((), 0, index(0), (1,)),
    ((4, 3), 0, T(np.zeros((0, 3), np.int64), "int64"), (0, 3)),
]
REFUSED = [
    ((4, 3), 0, index([4, 0, 0]), (1, 3)),
    ((4, 3), 0, index([-1, 0, 0]), (1, 3)),
    ((4, 3), 2, index([0, 0, 0]), (1, 3)),
    ((4, 3), 0, index([0, 0, 0, 0]), (1, 4)),
    ((4, 3), 0, index(0, 1), (2,)),
    ((4, 3), 0, T(np.zeros((1, 3), np.float32), "float32"), (1, 3)),
]


@sample("gather")
def gather(m):
    for shape, dim, at, _ in SHAPES + REFUSED:
        yield call(m.tensor(*shape), dim, at)


@sample("scatter", "scatter_add")
def scatter(m):
    for shape, dim, at, source in SHAPES + REFUSED:
        if m.op.startswith("aten::scatter.") and shape == (5,):
            at = index(4, 0, 2, 1)  # two writes to one place have no stated winner in PyTorch
        yield call(m.tensor(*shape), dim, at, m.tensor(*source))
    yield call(m.tensor(4, 3), 0, index([0, 1, 2], [1, 2, 3]), m.tensor(1, 3))


@sample("scatter_numbers")
def scatter_numbers(m):
    for shape, dim, at, source in SHAPES + REFUSED[:2]:
        yield call(m.tensor(*shape), dim, at, m.tensor(*source))


@sample("scatter_value")
def scatter_value(m):
    for shape, dim, at, _ in SHAPES + REFUSED:
        yield call(m.tensor(*shape), dim, at, m.number())


@sample("scatter_named")
def scatter_named(m):
    for shape, dim, at, source in SHAPES[:3] + REFUSED[:2]:
        for how in ("add", "multiply"):
            yield call(m.tensor(*shape), dim, at, m.tensor(*source), reduce=how)
    yield call(m.tensor(5), 0, index(1, 2), m.tensor(2), reduce="mean")


@sample("scatter_value_named")
def scatter_value_named(m):
    for shape, dim, at, _ in SHAPES[:3]:
        for how in ("add", "multiply"):
            yield call(m.tensor(*shape), dim, at, m.number(), reduce=how)
    yield call(m.tensor(5), 0, index(1, 2), m.number(), reduce="mean")


@sample("scatter_reduce")
def scatter_reduce(m):
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            yield call(m.tensor(4, 3, away=0.5), 0, SHAPES[0][2], m.tensor(2, 3, away=0.5), how, include_self=include)
            yield call(m.tensor(5, away=0.5), 0, index(4, 0, 2, 0), m.tensor(4, away=0.5), how, include_self=include)
    yield call(m.tensor(5), 0, index(1, 2), m.tensor(2), "add")
