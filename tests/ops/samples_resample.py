"""Samples of resampling."""

from __future__ import annotations

from kit import call, sample

SIZES = ((5,), (4, 3), (3, 4, 2))
OUT = ((7,), (7, 5), (5, 2, 4))
FACTORS = ((1.5,), (1.75, 0.7), (1.7, 0.5, 2.0))


def geometries(n: int):
    """Sizes of images, output sizes, and factors of the sizes that the last arguments say."""
    size, out, factors = SIZES[n - 1], OUT[n - 1], FACTORS[n - 1]
    yield (2, 3, *size), list(out), []
    yield (1, 2, *size), [int(a * f) for a, f in zip(size, factors, strict=True)], list(factors)
    yield (1, 1, *([1] * n)), [3] * n, []
    yield (2, 1, *size), [1] * n, []
    yield (0, 2, *size), list(out), []


def refused(n: int):
    size, out = SIZES[n - 1], OUT[n - 1]
    yield size, list(out)
    yield (1, 2, *size), [*out, 2]
    yield (1, 2, *size), [0] * n
    yield (1, 2, *size[:-1], 0), list(out)
    yield (1, 0, *size), list(out)


def nearest(m, n: int):
    for size, out, factors in geometries(n):
        yield call(m.tensor(*size), out, *factors)
    for size, out in refused(n):
        yield call(m.tensor(*size), out)


def nearest_backward(m, n: int):
    for size, out, factors in geometries(n):
        yield call(m.tensor(*size[:2], *out), out, list(size), *factors)
    yield call(m.tensor(1, 2, *OUT[n - 1]), list(OUT[n - 1]), [1, 2, *([0] * n)])
    yield call(m.tensor(1, 2, *SIZES[n - 1]), list(OUT[n - 1]), [1, 2, *SIZES[n - 1]])


def linear(m, n: int):
    if m.dtype == "uint8":  # interpolate() has weights of its own for bytes
        return
    for aligned in (False, True):
        for size, out, factors in geometries(n):
            yield call(m.tensor(*size), out, aligned, *factors)
    for size, out in refused(n):
        yield call(m.tensor(*size), out, False)


def linear_backward(m, n: int, high: float = 4):
    for aligned in (False, True):
        for size, out, factors in geometries(n):
            yield call(m.tensor(*size[:2], *out, low=-high, high=high), out, list(size), aligned, *factors)
    yield call(m.tensor(1, 2, *OUT[n - 1]), list(OUT[n - 1]), [1, 2, *([0] * n)], False)
    yield call(m.tensor(1, 2, *SIZES[n - 1]), list(OUT[n - 1]), [1, 2, *SIZES[n - 1]], True)


def smoothed():
    """Images, output sizes and factors for filters: smaller, larger, one dim alone, of one element, of none."""
    yield (2, 3, 9, 13), [4, 5], []
    yield (1, 2, 5, 4), [7, 9], []
    yield (2, 1, 6, 70), [6, 33], []
    yield (1, 2, 9, 8), [6, 14], [0.7, 1.75]
    yield (1, 1, 1, 1), [3, 2], []
    yield (1, 2, 4, 3), [1, 1], []


@sample("upsample_aa")
def upsample_aa(m):
    if m.dtype in ("float16", "bfloat16"):  # PyTorch has none
        return
    for aligned in (False, True):
        for size, out, factors in smoothed():
            yield call(m.tensor(*size, high=200 if m.dtype == "uint8" else 4), out, aligned, *factors)
    for size, out in refused(2):
        yield call(m.tensor(*size), out, False)


@sample("upsample_aa_backward")
def upsample_aa_backward(m):
    if m.dtype in ("uint8", "float16", "bfloat16"):
        return
    for aligned in (False, True):
        for size, out, factors in smoothed():
            yield call(m.tensor(*size[:2], *out, low=-1, high=1), out, list(size), aligned, *factors)
    yield call(m.tensor(1, 2, 4, 5), [3, 5], [1, 2, 7, 7], False)


@sample("upsample_bytes")
def upsample_bytes(m):
    if m.dtype != "uint8":
        return
    for aligned, cubic in ((False, False), (True, False), (False, True), (True, True)):
        for size, out, factors in smoothed():
            yield call(m.tensor(*size, high=255), out, aligned, *(factors or [None, None]), cubic)


@sample("weighted_bytes")
def weighted_bytes(m):
    for n, c, s, t, p in ((2, 3, 11, 4, 70), (1, 2, 5, 1, 3), (0, 2, 5, 2, 3), (2, 0, 5, 2, 3), (2, 1, 5, 2, 0)):
        shift = m.integers(low=6, high=9, dtype="int32")
        yield call(m.tensor(n, c, s, 1, low=0, high=255), m.integers(n, t, p, low=-1, high=s), m.integers(n, t, p, low=-60, high=120, dtype="int32"), shift)


for _n in (1, 2, 3):
    sample(f"upsample_nearest{_n}d")(lambda m, n=_n: nearest(m, n))
    sample(f"upsample_nearest{_n}d_backward")(lambda m, n=_n: nearest_backward(m, n))
    sample(f"upsample_linear{_n}d")(lambda m, n=_n: linear(m, n))
    sample(f"upsample_linear{_n}d_backward")(lambda m, n=_n: linear_backward(m, n))
sample("upsample_bicubic2d_backward")(lambda m: linear_backward(m, 2, 1))
