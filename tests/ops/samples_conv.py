"""Samples of convolutions, pooling and embedding tables."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample

SPATIAL = {1: (5,), 2: (4, 5), 3: (3, 4, 3)}
KERNEL = {1: (3,), 2: (3, 2), 3: (2, 2, 2)}


def small(m, *shape):
    return m.tensor(*shape, low=-2, high=2)


SOME_CASES = ("uint8", "int32")  # dtypes that PyTorch convolves in some cases only


def conv(m, n: int):
    if m.dtype in SOME_CASES:
        return
    x, k = SPATIAL[n], KERNEL[n]
    yield call(small(m, 2, 2, *x), small(m, 3, 2, *k), small(m, 3))
    yield call(small(m, 1, 4, *x), small(m, 4, 2, *k), None, [2] * n, [1] * n, [1] * n, 2)
    yield call(small(m, 2, *x), small(m, 1, 2, *k))
    yield call(small(m, 0, 2, *x), small(m, 3, 2, *k), small(m, 3))
    yield call(small(m, 1, 2, *[s + 2 for s in x]), small(m, 1, 2, *k), None, [1] * n, [0] * n, [2] * n)
    yield call(small(m, 2, 3, *x), small(m, 3, 2, *k))
    yield call(small(m, 2, 2, *[1 for _ in x]), small(m, 3, 2, *k))
    yield call(small(m, 2, 2, *x), small(m, 3, 2, *k), small(m, 2))
    yield call(small(m, *x), small(m, 3, 2, *k))


def conv_padding(m, n: int):
    x, k = SPATIAL[n], KERNEL[n]
    for padding in ("same", "valid"):
        yield call(small(m, 1, 2, *x), small(m, 2, 2, *k), small(m, 2), [1] * n, padding)
    yield call(small(m, 1, 2, *x), small(m, 2, 2, *k), None, [2] * n, "same")
    yield call(small(m, 1, 2, *x), small(m, 2, 2, *k), None, [1] * n, "none")


def conv_transpose(m, n: int):
    if m.dtype in SOME_CASES or m.dtype == "float16":  # whose sums PyTorch rounds more than once
        return
    x, k = SPATIAL[n], KERNEL[n]
    yield call(small(m, 2, 2, *x), small(m, 2, 3, *k), small(m, 3))
    yield call(small(m, 1, 4, *x), small(m, 4, 1, *k), None, [2] * n, [1] * n, [1] * n, 2)
    yield call(small(m, 2, *x), small(m, 2, 1, *k))
    yield call(small(m, 2, 3, *x), small(m, 2, 3, *k))
    yield call(small(m, 1, 2, *x), small(m, 2, 1, *k), None, [1] * n, [0] * n, [1] * n)


for _n in (1, 2, 3):
    sample(f"conv{_n}d")(lambda m, n=_n: conv(m, n))
    sample(f"conv{_n}d_padding")(lambda m, n=_n: conv_padding(m, n))
    sample(f"conv_transpose{_n}d")(lambda m, n=_n: conv_transpose(m, n))


@sample("convolution")
def convolution(m):
    if m.dtype in SOME_CASES or m.is_complex:
        return
    yield call(small(m, 1, 2, 3, 4), small(m, 2, 2, 2, 2), small(m, 2), [1, 1], [1, 0], [1, 1], False, [0, 0], 1)
    yield call(small(m, 1, 2, 3), small(m, 2, 1, 2), None, [2], [1], [1], True, [1], 2)
    yield call(small(m, 1, 1, 3, 3), small(m, 1, 1, 2, 2), small(m, 1), [2, 1], [0, 0], [1, 2], False, [0, 0], 1)
    yield call(small(m, 1, 2, 3, 4), small(m, 2, 2, 2, 2), None, [0, 1], [1, 0], [1, 1], False, [0, 0], 1)


@sample("convolve")
def convolve(m):
    if m.dtype == "bool":
        return
    yield call(small(m, 2, 4, 5), small(m, 6, 2, 3), small(m, 6), [2], [1], [1], 2)
    yield call(small(m, 1, 2, 3, 4), small(m, 2, 2, 2, 2), small(m, 2), [1, 1], [1, 0], [1, 2], 1)
    yield call(small(m, 1, 1, 3, 3, 2), small(m, 2, 1, 2, 2, 1), small(m, 2), [1, 2, 1], [0], [1], 1)


@sample("convolve_back")
def convolve_back(m):
    if m.dtype == "bool":
        return
    yield call(small(m, 2, 4, 5), small(m, 4, 3, 3), small(m, 6), [2], [1], [1], [1], 2)
    yield call(small(m, 1, 2, 3, 4), small(m, 2, 2, 2, 2), small(m, 2), [1, 2], [1, 0], [1, 2], [0, 1], 1)
    yield call(small(m, 1, 1, 2, 3, 2), small(m, 1, 2, 2, 2, 1), small(m, 2), [1, 2, 1], [0], [1], [0], 1)


@sample("convolution_backward")
def convolution_backward(m):
    if m.is_float and m.dtype != "float16":  # whose sums PyTorch rounds more than once
        yield call(
            small(m, 1, 2, 4, 3), small(m, 1, 2, 3, 4), small(m, 2, 2, 2, 2), [2],
            [1, 1], [1, 0], [1, 1], False, [0, 0], 1, [True, True, True],
        )  # fmt: skip


# ---- pooling


def max_pool(m, n: int):
    x, k = SPATIAL[n], KERNEL[n]
    if n == 1 and m.op.endswith("indices") and m.dtype == "bool":
        return
    yield call(m.distinct(1, 2, *x), list(k))
    yield call(m.distinct(2, *x), [2] * n, [1] * n, [1] * n)
    yield call(m.distinct(1, 1, *x), [2] * n, [2] * n, [0] * n, [1] * n, True)
    yield call(m.distinct(1, 1, *x), [2] * n, [1] * n, [0] * n, [2] * n)
    yield call(m.distinct(*x), [2] * n)
    yield call(m.distinct(1, 2, *x), [7] * n)
    yield call(m.distinct(1, 2, *x), [2] * n, [1] * n, [2] * n)
    yield call(m.distinct(1, 2, *x), [2] * n, [0] * n)


def avg_pool(m, n: int):
    x, k = SPATIAL[n], KERNEL[n]
    if n == 3 and m.dtype in ("bfloat16", "float16"):
        return  # which PyTorch does not average in three dims
    yield call(m.tensor(1, 2, *x), list(k))
    yield call(m.tensor(2, *x), [2] * n, [1] * n, [1] * n)
    yield call(m.tensor(1, 1, *x), [2] * n, [2] * n, [1] * n, True, False)
    if n > 1:
        yield call(m.tensor(1, 1, *x), [2] * n, [2] * n, [0] * n, False, True, 3)
        yield call(m.tensor(1, 1, *x), [2] * n, [2] * n, [0] * n, False, True, 0)
    yield call(m.tensor(*x), [2] * n)
    yield call(m.tensor(1, 2, *x), [7] * n)


def adaptive_pool(m, n: int):
    if n == 3 and "avg" in m.op and m.dtype in ("bfloat16", "float16"):
        return  # whose sums PyTorch rounds more than once
    x = SPATIAL[n]
    yield call(m.distinct(1, 2, *x), [2] * n)
    yield call(m.distinct(2, *x), [1] * n)
    yield call(m.distinct(1, 1, *x), [s + 1 for s in x])
    yield call(m.distinct(*x), [2] * n)
    yield call(m.distinct(1, 2, *x), [2] * (n + 1))


for _n in (1, 2, 3):
    sample(f"max_pool{_n}d")(lambda m, n=_n: max_pool(m, n))
    sample(f"avg_pool{_n}d")(lambda m, n=_n: avg_pool(m, n))
    sample(f"adaptive_pool{_n}d")(lambda m, n=_n: adaptive_pool(m, n))


def max_pool_backward(m, n: int):
    if not m.is_float:
        return
    out, x = [1] * n, [2] * n
    yield call(
        m.tensor(1, 2, *out),
        m.distinct(1, 2, *x),
        [2] * n,
        [2] * n,
        [0] * n,
        [1] * n,
        False,
        m.integers(1, 2, *out, high=2**n),
    )


def avg_pool_backward(m, n: int):
    if not m.is_float or n == 3 and m.dtype in ("bfloat16", "float16"):
        return
    yield call(m.tensor(1, 2, *[2] * n), m.tensor(1, 2, *[4] * n), [2] * n, [2] * n, [0] * n, False, True, None)
    yield call(m.tensor(1, 1, *[3] * n), m.tensor(1, 1, *[4] * n), [2] * n, [2] * n, [1] * n, False, False, None)


def adaptive_backward(m, n: int):
    if m.is_float:
        yield call(m.tensor(1, 2, *[2] * n), m.tensor(1, 2, *[3] * n))


def adaptive_max_backward(m, n: int):
    if m.is_float:
        yield call(m.tensor(1, 1, *[2] * n), m.distinct(1, 1, *[3] * n), m.integers(1, 1, *[2] * n, high=3**n))


def fractional_pool(m, n: int):
    x = [6, 5] if n == 2 else [4, 4, 4]
    if not m.is_float:
        return
    u = {k: m.tensor(*k, low=0, high=0.9) for k in [(1, 2, n), (2, 1, n), (1, 1, n)]}
    yield call(m.distinct(1, 1, *x), [2] * n, [3, 3] if n == 2 else [2, 2, 2], u[1, 1, n])
    yield call(m.distinct(1, 2, *x), [2] * n, [2] * n, u[1, 2, n])
    yield call(m.distinct(2, 1, *x), [2, 1, 3][:n], [2, 3, 1][:n], u[2, 1, n])
    yield call(m.distinct(1, *x), [1] * n, [3] * n, u[1, 1, n])
    yield call(m.distinct(1, 1, *x), [3] * n, [5] * n, u[1, 1, n])
    yield call(m.distinct(*x), [2] * n, [2] * n, u[1, 1, n])
    yield call(m.distinct(1, 1, *x), [2] * n, [2] * n, u[1, 2, n])


def fractional_backward(m, n: int):
    if m.is_float:
        yield call(
            m.tensor(1, 1, *[2] * n), m.distinct(1, 1, *[3] * n), [2] * n, [2] * n,
            m.integers(1, 1, *[2] * n, high=3**n),
        )  # fmt: skip


for _n in (2, 3):
    sample(f"fractional_max_pool{_n}d")(lambda m, n=_n: fractional_pool(m, n))
    sample(f"fractional_max_pool{_n}d_backward")(lambda m, n=_n: fractional_backward(m, n))
    sample(f"max_pool{_n}d_backward")(lambda m, n=_n: max_pool_backward(m, n))
    sample(f"avg_pool{_n}d_backward")(lambda m, n=_n: avg_pool_backward(m, n))
    sample(f"adaptive_pool{_n}d_backward")(lambda m, n=_n: adaptive_backward(m, n))
    sample(f"adaptive_max_pool{_n}d_backward")(lambda m, n=_n: adaptive_max_backward(m, n))


# ---- tables


@sample("embedding")
def embedding(m):
    yield call(m.tensor(5, 3), m.integers(2, 3, high=5))
    yield call(m.tensor(5, 3), m.integers(high=5))
    if m.dtype not in ("float64", "complex128"):  # gradients that are left out or scaled are no derivatives
        yield call(m.tensor(5, 3), m.integers(4, high=5, dtype="int32"), 2)
        yield call(m.tensor(5, 3), m.integers(4, high=3), -1, True)
    yield call(m.tensor(5, 3), m.integers(0))
    yield call(m.tensor(5, 3), m.integers(2, low=5, high=6))
    yield call(m.tensor(5), m.integers(2))
    yield call(m.tensor(5, 3), m.tensor(2, dtype="float32"))


@sample("embedding_backward")
def embedding_backward(m):
    if not m.is_float:
        return
    more = [False] if m.op == "aten::embedding_backward" else []
    yield call(m.tensor(2, 3, 2), m.integers(2, 3, high=5), 5, -1, False, *more)
    yield call(m.tensor(4, 2), m.integers(4, high=2), 4, 1, False, *more)
    yield call(m.tensor(4, 2), m.integers(4, high=2), 4, -1, True, *more)


@sample("embedding_sum")
def embedding_sum(m):
    if not (m.is_float or m.is_complex):
        return
    yield call(m.tensor(2, 3, 2), m.integers(2, 3, high=5), 5, -1)
    yield call(m.tensor(4, 2), m.integers(4, high=2), 4, 1)
    yield call(m.tensor(3, 2, 2), m.integers(3, high=2), 2, 0)
    yield call(m.tensor(2), m.integers(high=2), 3, -1)
    yield call(m.tensor(0, 2), m.integers(0), 3, -1)
    yield call(m.tensor(2, 2), m.integers(2, low=5, high=6), 5, -1)


def bags(m, rows: int, columns: int, many: int, count: int, table: int):
    at, bag = m.integers(many, high=max(table, 1)), m.integers(many, low=-1, high=max(count, 1))
    return m.tensor(rows, columns), at, bag, m.tensor(many, low=0.5, high=2)


@sample("bag_sum")
def bag_sum(m):
    if m.is_float:
        for columns, many, count, table in ((3, 7, 4, 5), (70, 1100, 1, 9), (1, 2100, 2, 3), (4, 0, 3, 2), (0, 3, 2, 4)):
            yield call(*bags(m, table, columns, many, count, table), count)
        yield call(m.tensor(2, 2), m.integers(2, low=5, high=6), m.integers(2), m.tensor(2), 3)
        yield call(m.tensor(2, 2), m.integers(2), m.integers(3), m.tensor(2), 3)


@sample("bag_sum_backward")
def bag_sum_backward(m):
    if m.is_float:
        for columns, many, count, table in ((3, 7, 4, 5), (70, 1100, 9, 1), (1, 2100, 2, 3), (4, 0, 3, 2), (0, 3, 2, 4)):
            yield call(*bags(m, count, columns, many, count, table), table)
        yield call(m.tensor(2, 2), m.integers(2, low=5, high=6), m.integers(2), m.tensor(2), 3)


@sample("embedding_renorm")
def embedding_renorm(m):
    if m.is_float:
        yield call(m.tensor(5, 3), m.integers(4, high=3), 1.0, 2.0)
        yield call(m.tensor(5, 3), m.integers(2, high=5), 100.0, 1.0)


def unpool(m, n: int, *more):
    out = [3] * n

    def places(*rows):  # all of one plane differ, so that the order of equals does not matter
        count = int(np.prod(rows, dtype=int))
        each = [m.random.permutation(3**n)[: 2**n] for _ in range(count)]
        return T(np.reshape(np.asarray(each, np.int64), [*rows, *[2] * n]), "int64")

    yield call(m.tensor(1, 2, *[2] * n), places(1, 2), out, *more)
    if not m.is_float:
        return
    yield call(m.tensor(2, *[2] * n), places(2), out, *more)
    yield call(m.tensor(1, 1, *[2] * n), places(1, 1), [2] * n, *more)
    yield call(m.tensor(0, 1, *[2] * n), T(np.zeros((0, 1, *[2] * n), np.int64), "int64"), out, *more)
    yield call(m.tensor(1, 1, *[2] * n), m.integers(1, 1, *[2] * n, low=-9, high=0), out, *more)
    yield call(m.tensor(1, 1, *[2] * n), m.integers(1, 1, *[2] * n, dtype="int32"), out, *more)
    yield call(m.tensor(1, 1, *[2] * n), m.integers(1, 1, *[1] * n), out, *more)
    yield call(m.tensor(*[2] * n), m.integers(*[2] * n), out, *more)
    yield call(m.tensor(1, 0, *[2] * n), T(np.zeros((1, 0, *[2] * n), np.int64), "int64"), out, *more)
    if m.dtype != "float64":  # whose derivative nobody has
        yield call(m.tensor(1, 1, *[2] * n), places(1, 1), [0, *out[1:]], *more)
    yield call(m.tensor(1, 1, *[2] * n), places(1, 1), [-1, *out[1:]], *more)


@sample("max_unpool2d")
def max_unpool2d(m):
    yield from unpool(m, 2)


@sample("max_unpool3d")
def max_unpool3d(m):
    yield from unpool(m, 3, [1, 1, 1], [0, 0, 0])
    if not m.is_float:
        return
    yield call(m.tensor(1, 1, 2, 2, 2), m.integers(1, 1, 2, 2, 2), [3, 3, 3], [1, 0, 1], [0, 0, 0])
    yield call(m.tensor(1, 1, 2, 2, 2), m.integers(1, 1, 2, 2, 2), [3, 3, 3], [1, 1], [0, 0, 0])
