"""Samples of sampling at the points of a grid."""

from __future__ import annotations

import itertools

import numpy as np
from kit import T, call, sample

MODES, PADDINGS = (0, 1, 2), (0, 1, 2)
SIZES = {2: (4, 5), 3: (3, 4, 2)}
WIDE = ("float32", "float64")
POINTS = {2: (3, 4), 3: (2, 3, 2)}


def points(m, *shape: int, low: float = -1.6, high: float = 1.6) -> T:
    """Odd multiples of 1/8: in these small images none lies at an element, at an edge, or half way, and positions and weights
    are exact in half types, in which PyTorch computes them."""
    v = m.tensor(*shape, low=low, high=high)
    if m.is_float:
        v.data = (2 * np.floor(v.data * 4) + 1) / 8
    return v


def sampled(m, dims: int):
    # PyTorch rounds each step in half types: where these are many, it says other numbers.
    for mode, padding, aligned in itertools.product(MODES[:2] if "16" in m.dtype else MODES, PADDINGS, (False, True)):
        image = m.tensor(2, 17 if padding == 0 and m.dtype in WIDE else 3, *SIZES[dims])
        yield call(image, points(m, 2, *POINTS[dims], dims), mode, padding, aligned)
    one = (1,) * dims
    for mode in MODES[:2] if "16" in m.dtype else MODES:
        yield call(m.tensor(1, 2, *one), points(m, 1, *POINTS[dims], dims), mode, 0, False)
        yield call(m.tensor(1, 2, *one), points(m, 1, *POINTS[dims], dims), mode, 2, True)
        yield call(m.tensor(1, 1, *SIZES[dims]), points(m, 1, *one, dims, low=-9, high=9), mode, 2, False)
    if m.is_float:  # of other dtypes PyTorch takes what is empty
        yield call(m.tensor(0, 2, *SIZES[dims]), m.tensor(0, *POINTS[dims], dims), 0, 0, False)
        yield call(m.tensor(2, 0, *SIZES[dims]), points(m, 2, *POINTS[dims], dims), 0, 0, False)
        yield call(m.tensor(2, 1, *SIZES[dims]), m.tensor(2, *POINTS[dims][1:], 0, dims), 0, 1, False)
        odd = points(m, 1, *POINTS[dims], dims)
        odd.data[0, 0].flat[:3] = (np.nan, np.inf, -np.inf)
        for padding in PADDINGS if dims == 2 else (0,):  # of volumes PyTorch moves NaN to the other end
            yield call(m.tensor(1, 2, *SIZES[dims]), odd, 0, padding, False)


def refused(m, dims: int):
    image, grid = m.tensor(2, 1, *SIZES[dims]), m.tensor(2, *POINTS[dims], dims)
    yield call(image, m.tensor(1, *POINTS[dims], dims), 0, 0, False)
    yield call(image, m.tensor(2, *POINTS[dims], dims + 1), 0, 0, False)
    yield call(m.tensor(2, 1, *SIZES[dims][1:], 0), grid, 0, 0, False)
    yield call(m.tensor(2, 1, 3), m.tensor(2, 3, 1), 0, 0, False)
    yield call(image, m.tensor(2, *POINTS[dims], dims, dtype="float64" if m.dtype == "float32" else "float32"), 0, 0, False)


def back(m, dims: int):
    if "16" in m.dtype:
        return
    for mode, padding, aligned in itertools.product(MODES[:2] if dims == 3 else MODES, PADDINGS, (False, True)):
        channels = 3 if padding or mode == 2 else 17  # which are walked another way
        image, grid = m.tensor(2, channels, *SIZES[dims], low=-1, high=1), points(m, 2, *POINTS[dims], dims)
        yield call(m.tensor(2, channels, *POINTS[dims], low=-1, high=1), image, grid, mode, padding, aligned, [True, True])
    yield call(m.tensor(1, 2, *POINTS[dims]), m.tensor(1, 2, *SIZES[dims]), points(m, 1, *POINTS[dims], dims), 0, 0, False, [False, True])
    if m.is_float:
        yield call(m.tensor(0, 2, *POINTS[dims]), m.tensor(0, 2, *SIZES[dims]), m.tensor(0, *POINTS[dims], dims), 0, 0, True, [True, True])


for _dims in (2, 3):

    @sample(f"grid_sampler_{_dims}d")
    def _(m, dims=_dims):
        yield from sampled(m, dims)
        yield from refused(m, dims)

    sample(f"grid_sampler_{_dims}d_backward")(lambda m, dims=_dims: back(m, dims))


@sample("grid_sampler")
def grid_sampler(m):
    for dims in (2,) if "16" in m.dtype else (2, 3):
        yield from itertools.islice(sampled(m, dims), 6)
        yield from refused(m, dims)


@sample("affine_grid_generator")
def affine_grid_generator(m):
    if not m.is_float:
        return
    for aligned in (False, True):
        yield call(m.tensor(2, 2, 3), [2, 3, 4, 5], aligned)
        if m.dtype.startswith("float") and m.dtype != "float16":  # PyTorch has no halves of a dim of one element
            yield call(m.tensor(1, 3, 4), [1, 2, 3, 1, 2], aligned)
            yield call(m.tensor(2, 2, 3), [2, 1, 0, 3], aligned)
    yield call(m.tensor(2, 2, 3), [2, 3, 4], False)
    yield call(m.tensor(3, 2, 3), [2, 3, 4, 5], False)
    yield call(m.tensor(2, 3, 3), [2, 3, 4, 5], False)


def lines(m):
    if not m.is_float:
        return
    for mode, padding, aligned in itertools.product(MODES, PADDINGS, (False, True)):
        taps = np.arange((2, 1, 4)[mode], dtype=np.float64 if m.dtype == "float64" else np.float32).reshape(-1, 1)
        yield points(m, 2, 1, 7), T(taps, m.dtype), mode, padding, aligned


@sample("grid_place")
def grid_place(m):
    for at, tap, mode, padding, aligned in lines(m):
        at.data = at.data.reshape(2, 1, 1, 7)
        yield call(at, tap, m.integers(2, 3, 1, 7, low=-1), 5.0, mode, padding, aligned)


@sample("grid_weight")
def grid_weight(m):
    for at, tap, mode, padding, aligned in lines(m):
        for order in range(5):
            yield call(at, tap, 5.0, mode, padding, aligned, order)


@sample("grid_bilinear")
def grid_bilinear(m):
    for (n, c, h, w, q), border, aligned in itertools.product(((2, 3, 5, 4, 70), (1, 1, 1, 7, 3), (0, 2, 5, 5, 3)), (False, True), (False, True)):
        yield call(m.tensor(n, c, h, w), points(m, n, q), points(m, n, q), border, aligned)
    if m.dtype == "float32":
        yield call(m.tensor(2, 3, 4), m.tensor(2, 5), m.tensor(2, 5), False, False)
        yield call(m.tensor(2, 3, 4, 4), m.tensor(2, 5), m.tensor(2, 4), False, False)


@sample("weighted_gather")
def weighted_gather(m):
    for n, c, s, t, p in ((2, 3, 11, 4, 70), (1, 2, 5, 1, 3), (0, 2, 5, 2, 3), (2, 0, 5, 2, 3), (2, 1, 5, 2, 0)):
        yield call(m.tensor(n, c, s, 1), m.integers(n, t, p, low=-1, high=s), m.tensor(n, t, p))
    if m.dtype in WIDE:
        yield call(m.tensor(2, 3, 4), m.integers(2, 1, 3), m.tensor(2, 1, 3))
        yield call(m.tensor(2, 3, 4, 1), m.integers(2, 1, 3), m.tensor(2, 1, 2))


@sample("weighted_scatter")
def weighted_scatter(m):
    for n, c, s, t, p in ((2, 3, 11, 4, 70), (1, 2, 5, 1, 3), (0, 2, 5, 2, 3), (2, 0, 5, 2, 3), (2, 1, 5, 2, 0)):
        yield call(m.tensor(n, c, p, 1), m.integers(n, t, p, low=-1, high=s), m.tensor(n, t, p), s)
    if m.dtype in WIDE:
        yield call(m.tensor(2, 3, 4, 1), m.integers(2, 1, 3), m.tensor(2, 1, 3), 5)


@sample("gathered_products")
def gathered_products(m):
    for n, c, s, t, p in ((2, 3, 11, 4, 70), (1, 2, 5, 1, 3), (0, 2, 5, 2, 3), (2, 0, 5, 2, 3), (2, 1, 5, 2, 0)):
        yield call(m.tensor(n, c, s, 1), m.integers(n, t, p, low=-1, high=s), m.tensor(n, c, p, 1))
    if m.dtype in WIDE:
        yield call(m.tensor(2, 3, 4, 1), m.integers(2, 1, 3), m.tensor(2, 2, 3, 1))
