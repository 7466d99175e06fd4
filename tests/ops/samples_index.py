"""Samples of reading and writing through indices and masks."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def positions(*values) -> T:
    return T(np.asarray(values, np.int64), "int64")


@sample("index")
def index(m):
    yield call(m.tensor(4, 3), [positions(0, 3, -1)])
    yield call(m.tensor(4, 3), [None, positions([2, 0], [1, 1])])
    yield call(m.tensor(4, 3, 2), [positions(1, 2), None, positions(0, -2)])
    yield call(m.tensor(4, 3), [m.mask(4, 3)])
    yield call(m.tensor(4, 3), [m.mask(4), positions(1)])
    yield call(m.tensor(4, 3), [m.integers(2, low=0, high=4, dtype="int32")])
    yield call(m.tensor(4, 3), [m.integers(0)])
    yield call(m.tensor(4, 3), [positions(4)])
    yield call(m.tensor(4, 3), [m.mask(3)])
    yield call(m.tensor(4, 3), [positions(0, 1), positions(0, 1, 2)])
    yield call(m.tensor(4), [positions(0), positions(0)])
    yield call(m.tensor(4, 3), [m.tensor(2, dtype="float32")])


@sample("index_put")
def index_put(m):
    yield call(m.tensor(4, 3), [positions(0, 3)], m.tensor(2, 3))
    yield call(m.tensor(4, 3), [positions(0, 3, 0)], m.tensor(3), True)
    yield call(m.tensor(4, 3), [None, positions(1, -1)], m.tensor(4, 1))
    yield call(m.tensor(3, 2), [positions(0, 0, 1), positions(1, 1, 0)], m.tensor(3), True)
    yield call(m.tensor(4, 3), [m.mask(4, 3)], m.tensor())
    yield call(m.tensor(4, 3), [positions(0)], m.tensor(2))
    yield call(m.tensor(4, 3), [positions(5)], m.tensor(3))


@sample("index_select")
def index_select(m):
    yield call(m.tensor(4, 3), 0, positions(3, 0, 0))
    yield call(m.tensor(4, 3), -1, m.integers(2, dtype="int32"))
    yield call(m.tensor(4, 3), 1, positions(2))
    yield call(m.tensor(), 0, positions(0))
    yield call(m.tensor(4, 3), 0, m.integers(0))
    yield call(m.tensor(4, 3), 0, positions(4))
    yield call(m.tensor(4, 3), 0, positions([0, 1], [1, 0]))
    yield call(m.tensor(4, 3), 0, m.tensor(2, dtype="float32"))


@sample("index_add")
def index_add(m):
    yield call(m.tensor(4, 3), 0, positions(0, 2, 0), m.tensor(3, 3))
    yield call(m.tensor(4, 3), -1, positions(1), m.tensor(4, 1))
    yield call(m.tensor(4, 3), 0, positions(1), m.tensor(1, 3), alpha=m.number())
    yield call(m.tensor(4), 0, m.integers(2, dtype="int32"), m.tensor(2))
    yield call(m.tensor(4, 3), 0, positions(0, 1), m.tensor(3, 3))
    yield call(m.tensor(4, 3), 0, positions(4), m.tensor(1, 3))


@sample("index_copy")
def index_copy(m):
    yield call(m.tensor(4, 3), 0, positions(0, 2), m.tensor(2, 3))
    yield call(m.tensor(4, 3), -1, positions(1), m.tensor(4, 1))
    yield call(m.tensor(4, 3), 0, m.integers(0), m.tensor(0, 3))
    yield call(m.tensor(4, 3), 0, positions(0, 1), m.tensor(3, 3))
    yield call(m.tensor(4, 3), 0, positions(4), m.tensor(1, 3))


@sample("index_fill")
def index_fill(m):
    yield call(m.tensor(4, 3), 0, positions(0, 2), m.number())
    yield call(m.tensor(4, 3), -1, positions(1, 1), m.number())
    yield call(m.tensor(), 0, positions(0), m.number())
    yield call(m.tensor(4, 3), 0, positions(4), m.number())


@sample("add_rows")
def add_rows(m):
    yield call(m.tensor(4, 3), positions(0, 2, 0), m.tensor(3, 3))
    yield call(m.tensor(4), positions(1, 1), m.tensor(2))
    yield call(m.tensor(4, 3), positions(4), m.tensor(1, 3))
    yield call(m.tensor(2, 0), positions(1), m.tensor(1, 0))


@sample("index_fill_tensor")
def index_fill_tensor(m):
    yield call(m.tensor(4, 3), 0, positions(0, 2), m.tensor())
    yield call(m.tensor(4, 3), -1, positions(1, 1), m.tensor())
    yield call(m.tensor(4, 3), 0, positions(0), m.tensor(2))


@sample("index_reduce")
def index_reduce(m):
    if m.dtype == "bool" or m.is_complex:
        return  # which PyTorch takes in some cases only
    for how in ("prod", "mean", "amax", "amin"):
        for include in (True, False):
            at = positions(0, 2, 0)
            yield call(m.tensor(4, 3, away=0.5), 0, at, m.tensor(3, 3, away=0.5), how, include_self=include)
    yield call(m.tensor(4, 3, away=0.5), -1, positions(1), m.tensor(4, 1, away=0.5), "prod")
    yield call(m.tensor(4, 3), 0, positions(0, 1), m.tensor(3, 3), "mean")
    yield call(m.tensor(4, 3), 0, positions(0), m.tensor(1, 3), "sum")


@sample("take")
def take(m):
    yield call(m.tensor(4, 3), positions(0, -1, 11))
    yield call(m.tensor(4, 3), positions([5, 5], [0, 3]))
    yield call(m.tensor(), positions(0))
    yield call(m.tensor(4, 3), m.integers(0))
    yield call(m.tensor(4, 3), positions(12))
    yield call(m.tensor(4, 3), m.integers(2, dtype="int32"))


@sample("put_plainly")
def put_plainly(m):
    yield call(m.tensor(4, 3), positions(0, -1, 7), m.tensor(3))
    yield call(m.tensor(4, 3), positions([5, 5], [0, 3]), m.tensor(2, 2))
    yield call(m.tensor(4, 3), positions(12), m.tensor(1))


@sample("put")
def put(m):
    yield call(m.tensor(4, 3), positions(0, -1, 7), m.tensor(3))
    yield call(m.tensor(4, 3), positions([5, 4], [0, 3]), m.tensor(2, 2))
    yield call(m.tensor(4, 3), positions(5, 5, 0), m.tensor(3), True)
    yield call(m.tensor(4, 3), positions(0, 1), m.tensor(3))
    yield call(m.tensor(4, 3), positions(12), m.tensor(1))


@sample("take_along_dim")
def take_along_dim(m):
    yield call(m.tensor(4, 3), positions([0, 2], [1, 1], [2, 0], [0, 0]), 1)
    yield call(m.tensor(4, 3), positions([3, 0, 1]), 0)
    yield call(m.tensor(4, 3), positions([-1], [0], [2], [1]), -1)
    yield call(m.tensor(4, 3), positions(0, 11, 5))
    yield call(m.tensor(4, 3), positions(0), 1)
    yield call(m.tensor(4, 3), m.integers(4, 1, dtype="int32"), 1)


@sample("masked_fill")
def masked_fill(m):
    yield call(m.tensor(4, 3), m.mask(4, 3), m.number())
    yield call(m.tensor(4, 3), m.mask(3), m.number())
    yield call(m.tensor(1, 3), m.mask(4, 1), m.number())
    yield call(m.tensor(), m.mask(), m.number())
    yield call(m.tensor(4, 3), m.mask(2), m.number())
    yield call(m.tensor(4, 3), m.integers(4, 3), m.number())


@sample("masked_fill_tensor")
def masked_fill_tensor(m):
    yield call(m.tensor(4, 3), m.mask(4, 3), m.tensor())
    yield call(m.tensor(4, 3), m.mask(3), m.tensor())
    yield call(m.tensor(4, 3), m.mask(4, 3), m.tensor(1))


@sample("masked_select")
def masked_select(m):
    yield call(m.tensor(4, 3), m.mask(4, 3))
    yield call(m.tensor(4, 3), m.mask(4, 1))
    yield call(m.tensor(3), m.mask(2, 3))
    yield call(m.tensor(), m.mask())
    yield call(m.tensor(4, 3), m.mask(2))
    yield call(m.tensor(4, 3), m.integers(4, 3))


@sample("masked_scatter")
def masked_scatter(m):
    yield call(m.tensor(4, 3), m.mask(4, 3), m.tensor(12))
    yield call(m.tensor(4, 3), m.mask(4, 1), m.tensor(3, 4))
    yield call(m.tensor(4, 3), T(np.ones((4, 3), bool), "bool"), m.tensor(5))
    yield call(m.tensor(4, 3), m.integers(4, 3), m.tensor(12))


@sample("nonzero_static")
def nonzero_static(m):
    yield call(m.tensor(4, 3, low=-1, high=1), size=3)
    yield call(m.tensor(2, 3, 2, low=0, high=2), size=15, fill_value=7)
    yield call(m.tensor(5, low=-1, high=1), size=0)
    yield call(m.tensor(), size=2)
    yield call(m.tensor(0, 3), size=2)
    yield call(m.tensor(3), size=-1)


@sample("nonzero")
def nonzero(m):
    yield call(m.tensor(4, 3, low=-1, high=1))
    yield call(m.tensor(2, 3, 2, low=0, high=2))
    yield call(m.tensor(5, low=-1, high=1))
    yield call(m.tensor())
    yield call(m.tensor(0, 3))


@sample("count_nonzero")
def count_nonzero(m):
    yield call(m.tensor(4, 3, low=-1, high=2))
    yield call(m.tensor(4, 3, low=-1, high=2), 1)
    yield call(m.tensor(0, 3), 0)
    yield call(m.tensor())
    yield call(m.tensor(4, 3), 2)


@sample("count_nonzero_dims")
def count_nonzero_dims(m):
    yield call(m.tensor(4, 3, 2, low=-1, high=2), [0, -1])
    yield call(m.tensor(4, 3, low=-1, high=2), [1])
    yield call(m.tensor(4, 3), [0, 0])
