"""Samples of reductions, and of filling and copying."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


@sample("reduce_all")
def reduce_all(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor())
    yield call(m.tensor(2, 40))
    if m.is_float:
        yield call(T(np.array([1.0, np.nan, 2.0], np.float32), m.dtype))


@sample("reduce_dims")
def reduce_dims(m):
    yield call(m.tensor(3, 5), [0])
    yield call(m.tensor(3, 5), [1], True)
    yield call(m.tensor(2, 3, 4), [0, 2])
    yield call(m.tensor(2, 3, 4), [-1, 0], True)
    yield call(m.tensor(0, 3), [0])
    yield call(m.tensor(3, 33), [1])


@sample("sum_to_size")
def sum_to_size(m):
    yield call(m.tensor(2, 3, 4), [3, 1])
    yield call(m.tensor(2, 3), [2, 3])


@sample("fill_")
def fill_(m):
    yield call(m.tensor(3, 4), m.number())


@sample("copy_")
def copy_(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 4), m.tensor(4, dtype="float32", low=0))


@sample("to_dtype")
def to_dtype(m):
    for name in ("float32", "int32", "bool", "float64", "bfloat16"):
        if m.op.endswith("_to_copy"):
            yield call(m.tensor(3, 4), dtype=D(name))
        else:
            yield call(m.tensor(3, 4), D(name))


@sample("item")
def item(m):
    yield call(m.tensor())
    yield call(m.tensor(1, 1))


@sample("create")
def create(m):
    yield call([3, 4], dtype=D(m.dtype))
    yield call([])
    yield call([0, 2], dtype=D(m.dtype))


@sample("create_full")
def create_full(m):
    yield call([3, 4], m.number())
    yield call([2], m.number(), dtype=D("float32"))


@sample("create_like")
def create_like(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(3), dtype=D("float32"))


@sample("create_full_like")
def create_full_like(m):
    yield call(m.tensor(3, 4), m.number())


@sample("create_uninitialised")
def create_uninitialised(m):
    """Of no elements, since others may be anything; and what is refused."""
    name = m.op.removeprefix("aten::").partition(".")[0]
    like, how = ((m.tensor(2),), {}) if name.startswith("new_") else ((), {"dtype": D(m.dtype)})
    if name == "empty_like":
        yield call(m.tensor(0, 3))
        yield call(m.tensor(2, 0, 4), dtype=D("float64"))
    elif name == "empty_permuted":
        yield call([2, 0, 3], [2, 0, 1], **how)
        yield call([2, 0], [0, 0], **how)
        yield call([2, 0], [0], **how)
    elif name.endswith("_strided"):
        yield call(*like, [0, 3], [3, 1], **how)
        yield call(*like, [2, 0, 4], [1, 1, 2], dtype=D("float64"))
        yield call(*like, [2, 0], [1], **how)
        yield call(*like, [2], [-1], **how)
    else:
        yield call(*like, [0, 3], **how)
        yield call(*like, [2, 0, 4], dtype=D("float64"))
        yield call(*like, [2, -1], **how)


@sample("as_strided")
def as_strided(m):
    if "backward" in m.op:
        return
    yield call(m.tensor(12), [3, 2], [4, 1], 1)
    yield call(m.tensor(6), [3, 3], [1, 1], 0)


@sample("expand")
def expand(m):
    yield call(m.tensor(3, 1), [2, 3, 4])
    yield call(m.tensor(3), [-1])


@sample("unsqueeze")
def unsqueeze(m):
    for d in (0, 1, -1):
        yield call(m.tensor(3, 4), d)


@sample("squeeze_dim")
def squeeze_dim(m):
    yield call(m.tensor(3, 1, 4), 1)
    yield call(m.tensor(3, 1, 4), 0)


@sample("view")
def view(m):
    yield call(m.tensor(3, 4), [2, 6])
    yield call(m.tensor(3, 4), [-1])


@sample("reshape")
def reshape(m):
    yield call(m.tensor(3, 4), [4, 3])
    yield call(m.tensor(2, 0, 4), [0])
