"""Samples of searching, counting and functions composed of several families."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def few(m, *shape):
    """Values of which several are equal."""
    t = m.tensor(*shape, low=0, high=3)
    return T(np.round(t.data) if m.is_float or m.is_complex else t.data, t.dtype)


def ascending(m, *shape):
    t = m.tensor(*shape)
    return T(np.sort(t.data, axis=-1), t.dtype)


@sample("searchsorted")
def searchsorted(m):
    yield call(ascending(m, 5), m.tensor(2, 3))
    yield call(ascending(m, 5), m.tensor(4), right=True)
    yield call(ascending(m, 5), m.tensor(4), side="right", out_int32=True)
    yield call(ascending(m, 2, 5), m.tensor(2, 3))
    unsorted = m.distinct(6)
    yield call(unsorted, m.tensor(3), sorter=T(np.argsort(unsorted.data), "int64"))
    yield call(ascending(m, 0), m.tensor(3))
    yield call(ascending(m, 5), m.tensor())
    yield call(ascending(m, 2, 5), m.tensor(3, 3))
    yield call(ascending(m, 5), m.tensor(3), side="left", right=True)


@sample("search_plainly")
def search_plainly(m):
    yield call(ascending(m, 5), m.tensor(2, 3), False)
    yield call(ascending(m, 5), m.tensor(), True)
    yield call(ascending(m, 2, 3, 5), m.tensor(2, 3, 4), True)
    yield call(ascending(m, 2, 5), m.tensor(2, 0), False)
    yield call(ascending(m, 0), m.tensor(3), False)


@sample("searchsorted_scalar")
def searchsorted_scalar(m):
    yield call(ascending(m, 5), m.number())
    yield call(ascending(m, 5), m.number(), right=True)
    yield call(ascending(m, 2, 5), m.number())


@sample("bucketize")
def bucketize(m):
    yield call(m.tensor(2, 3), ascending(m, 5))
    yield call(m.tensor(4), ascending(m, 3), right=True, out_int32=True)
    yield call(m.tensor(4), ascending(m, 2, 3))


@sample("bucketize_scalar")
def bucketize_scalar(m):
    yield call(m.number(), ascending(m, 5))
    yield call(m.number(), ascending(m, 5), right=True)


@sample("isin")
def isin(m):
    yield call(few(m, 2, 3), few(m, 2))
    yield call(few(m, 4), few(m, 2), invert=True)
    yield call(few(m, 4), few(m, 0))
    yield call(few(m, 4), m.integers(3, dtype="int64"))


@sample("among")
def among(m):
    yield call(few(m, 2, 3), few(m, 2), False)
    yield call(few(m, 4), few(m, 2, 1), True)
    yield call(few(m, 4), few(m, 0), True)
    yield call(few(m), few(m), False)
    yield call(few(m, 0), few(m, 2), False)


@sample("isin_scalar")
def isin_scalar(m):
    yield call(few(m, 4), 1)
    yield call(few(m, 4), 1, invert=True)


@sample("isin_number")
def isin_number(m):
    yield call(1, few(m, 4))
    yield call(7, few(m, 4), invert=True)


@sample("bins")
def bins(m):
    yield call(m.tensor(9), m.integers(9, high=5), 5)
    yield call(m.tensor(9), m.integers(9, high=5, dtype="int32"), 8)
    yield call(m.tensor(0), m.integers(0), 2)
    yield call(m.tensor(9), m.integers(9, low=3, high=5), 3)


@sample("bincount")
def bincount(m):
    if m.is_float or m.is_complex or m.dtype == "bool":
        yield call(m.tensor(3))
        return
    numbers = m.integers(9, high=5, dtype=m.dtype)
    yield call(numbers)
    yield call(numbers, T(np.arange(9, dtype=np.float32), "float32"))
    yield call(numbers, T(np.arange(9, dtype=np.int64), "int64"), 8)
    yield call(m.integers(0, dtype=m.dtype), minlength=2)
    yield call(m.integers(2, 2, dtype=m.dtype))
    yield call(numbers, minlength=-1)


@sample("histc")
def histc(m):
    if m.dtype in ("float16", "bfloat16"):  # PyTorch finds the bins in these dtypes
        yield call(few(m, 20), bins=4, min=-2, max=2)
        return
    yield call(m.tensor(20))
    yield call(m.tensor(4, 5), 5)
    yield call(m.tensor(20), bins=4, min=-2, max=2)
    yield call(m.tensor(0), 3)
    yield call(m.tensor(3), 0)


@sample("dist")
def dist(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 4), m.tensor(4), 1)
    yield call(m.tensor(3), m.tensor(3), float("inf"))
    yield call(m.tensor(3), m.tensor(3), 0)


@sample("linalg_cross")
def linalg_cross(m):
    yield call(m.tensor(2, 3), m.tensor(2, 3))
    yield call(m.tensor(3, 2), m.tensor(3, 1), dim=0)
    yield call(m.tensor(2, 4), m.tensor(2, 4))
    yield call(m.tensor(3), m.tensor(1, 3))


@sample("cross")
def cross(m):
    yield call(m.tensor(2, 3), m.tensor(2, 3))
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 3), m.tensor(3, 3), 1)
    yield call(m.tensor(2, 4), m.tensor(2, 4))


@sample("cdist")
def cdist(m):
    if m.dtype in ("float16", "bfloat16"):
        yield call(m.tensor(3, 4), m.tensor(2, 4))
        return
    for p in (2.0, 1.0, 0.0, 3.0, float("inf")):
        yield call(m.tensor(3, 4), m.tensor(2, 4), p)
    yield call(m.tensor(2, 3, 4), m.tensor(1, 2, 4))
    yield call(m.tensor(0, 4), m.tensor(2, 4))
    yield call(m.tensor(3, 4), m.tensor(2, 5))
    yield call(m.tensor(3, 4), m.tensor(2, 4), -1.0)


@sample("euclidean_dist")
def euclidean_dist(m):
    yield call(m.tensor(3, 4), m.tensor(2, 4))
    yield call(m.tensor(2, 3, 3), m.tensor(2, 2, 3))


@sample("distances")
def distances(m):
    for p in (2.0, 1.0, 0.0, 3.0, 0.5, 1.5, float("inf")):
        yield call(m.tensor(3, 4), m.tensor(2, 4), p)
    yield call(m.tensor(2, 3, 4), m.tensor(2, 2, 4), 1.0)
    yield call(m.tensor(2, 40), m.tensor(3, 40), 2.0)
    yield call(m.tensor(3, 0), m.tensor(2, 0), float("inf"))
    yield call(m.tensor(0, 4), m.tensor(2, 4), 1.0)


@sample("distances_backward")
def distances_backward(m):
    for p in (2.0, 1.0, 0.0, 3.0, 1.5):
        yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(2, 4), m.tensor(3, 2, low=0.5), p)
    yield call(m.tensor(2, 3, 2), m.tensor(2, 3, 40), m.tensor(2, 2, 40), m.tensor(2, 3, 2, low=0.5), 2.0)
    yield call(m.tensor(3, 2), m.tensor(3, 0), m.tensor(2, 0), m.tensor(3, 2, low=0.5), 2.0)


@sample("pdist")
def pdist(m):
    yield call(m.tensor(4, 3))
    yield call(m.tensor(4, 3), 1.0)
    yield call(m.tensor(1, 3))
    yield call(m.tensor(4))


@sample("trapezoid")
def trapezoid(m):
    yield call(m.tensor(2, 5), m.tensor(5))
    yield call(m.tensor(5, 2), m.tensor(5, 2), dim=0)
    yield call(m.tensor(2, 5), m.tensor(4))


@sample("trapezoid_dx")
def trapezoid_dx(m):
    yield call(m.tensor(2, 5))
    yield call(m.tensor(5, 2), dx=0.5, dim=0)
    yield call(m.tensor(1))


@sample("fill_diagonal")
def fill_diagonal(m):
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(7, 3), 1)
    yield call(m.tensor(7, 3), 1, True)
    yield call(m.tensor(3, 3, 3), 1)
    yield call(m.tensor(3), 1)


@sample("renorm")
def renorm(m):
    yield call(m.tensor(3, 4), 2, 0, 1.5)
    yield call(m.tensor(3, 4, 2), 1, 1, 5)
    yield call(m.tensor(3), 1, 0, 5)
    yield call(m.tensor(3, 2), 0, 0, 5)


@sample("vander")
def vander(m):
    yield call(m.tensor(3))
    yield call(m.tensor(3), 5, True)
    yield call(m.tensor(3), 0)
    yield call(m.tensor(3, 2))


@sample("choices")
def choices(m):
    yield call(4, 2, False)
    yield call(3, 2, True)
    yield call(2, 3, False)
    yield call(5, 5, False)
    yield call(0, 1, True)
    yield call(3, 0, False)


@sample("combinations")
def combinations(m):
    yield call(m.tensor(4))
    yield call(m.tensor(4), 3)
    yield call(m.tensor(3), 2, True)
    yield call(m.tensor(3), 4)
    yield call(m.tensor(3), 0)
    yield call(m.tensor(3, 2))


@sample("cov")
def cov(m):
    yield call(m.tensor(3, 6))
    yield call(m.tensor(6))
    yield call(m.tensor(3, 6), correction=0)
    yield call(m.tensor(3, 6), fweights=m.integers(6, low=1, high=4))
    yield call(m.tensor(3, 6), aweights=T(np.linspace(0.5, 1, 6), "float64"))
    yield call(m.tensor(2, 2, 2))


@sample("corrcoef")
def corrcoef(m):
    yield call(m.tensor(3, 6))
    yield call(m.tensor(6))
    yield call(m.tensor(2, 2, 2))


@sample("quantile")
def quantile(m):
    q = T(np.array([0.0, 0.3, 0.5, 1.0]), m.dtype if m.is_float else "float32")
    x = m.distinct(3, 5)
    yield call(x, q)
    yield call(x, q, 1)
    yield call(x, q, 0, True)
    for how in ("lower", "higher", "midpoint", "nearest"):
        yield call(x, q, 1, interpolation=how)
    yield call(x, q, 1, interpolation="other")
    if m.is_float:
        holes = m.distinct(3, 5)
        holes.data[0, 2] = np.nan
        holes.data[1] = np.nan
        yield call(holes, q, 1)
    yield call(m.tensor(0), q)


@sample("quantile_scalar")
def quantile_scalar(m):
    yield call(m.distinct(3, 5), 0.4)
    yield call(m.distinct(3, 5), 0.4, 1)
    yield call(m.distinct(3, 5), 1.4)


# ---- slopes

HALVES = ("float16", "bfloat16")


def coordinates(m, n: int):
    return T(np.cumsum(m.random.uniform(0.5, 2, n)).astype(np.float64 if m.dtype == "float64" else np.float32), m.dtype)


@sample("gradient_scalarint")
def gradient_scalarint(m):
    if m.dtype in HALVES:
        return  # in which PyTorch rounds each step
    yield call(m.tensor(4, 3))
    yield call(m.tensor(5, 4), spacing=2, edge_order=2)
    yield call(m.tensor(5, 4), spacing=0.5, dim=-1, edge_order=2)
    yield call(m.tensor(2), dim=0)
    yield call(m.tensor())
    yield call(m.tensor(2, 3), edge_order=2)
    yield call(m.tensor(2, 3), edge_order=3)
    yield call(m.tensor(2, 3), dim=2)
    yield call(m.tensor(0))


@sample("gradient_scalararray")
def gradient_scalararray(m):
    if m.dtype in HALVES:
        return
    yield call(m.tensor(4, 3), spacing=2, dim=[1, 0])
    yield call(m.tensor(4, 3), spacing=0.5, dim=[-1], edge_order=2)
    yield call(m.tensor(4, 3), spacing=0.5, dim=[])
    yield call(m.tensor(4, 3), spacing=0.5, dim=[1, -1])


@sample("gradient_array")
def gradient_array(m):
    if m.dtype in HALVES:
        return
    yield call(m.tensor(4, 3), dim=[1, 0])
    yield call(m.tensor(4, 3), dim=[-2], edge_order=2)
    yield call(m.tensor(4, 3), dim=[0, 0])


@sample("gradient_lists_int")
def gradient_lists_int(m):
    if m.dtype in HALVES:
        return
    yield call(m.tensor(4, 3), spacing=[2.0, 0.5])
    yield call(m.tensor(4, 3), spacing=[2.0], dim=1, edge_order=2)
    yield call(m.tensor(4, 3), spacing=[2.0])
    yield call(m.tensor(4, 3), spacing=[2.0, 0.5], dim=1)


@sample("gradient_lists")
def gradient_lists(m):
    if m.dtype in HALVES:
        return
    yield call(m.tensor(4, 3), spacing=[2.0, 0.5], dim=[1, 0])
    yield call(m.tensor(4, 3), spacing=[2.0], dim=[1], edge_order=2)
    yield call(m.tensor(4, 3), spacing=[2.0], dim=[1, 0])


@sample("gradient_tensors_int")
def gradient_tensors_int(m):
    if m.dtype not in ("float32", "float64"):
        return
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 4), coordinates(m, 3)])
    yield call(m.tensor(2, 4, 3), spacing=[coordinates(m, 4)], dim=1, edge_order=2)
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 4)])
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 5)], dim=0)
    yield call(m.tensor(4), spacing=[m.tensor(2, 2)])


@sample("gradient_tensors")
def gradient_tensors(m):
    if m.dtype not in ("float32", "float64"):
        return
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 3), coordinates(m, 4)], dim=[1, 0])
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 3)], dim=[-1], edge_order=2)
    yield call(m.tensor(4, 3), spacing=[coordinates(m, 3)], dim=[1, 0])


# ---- histograms


def has_histograms(m):
    return m.dtype in ("float32", "float64")


@sample("bin_edges")
def bin_edges(m):
    if has_histograms(m):
        yield call(m.tensor(7, 2), [3, 4], [])
        yield call(m.tensor(5, 2), [1, 10], [-1.0, 2.5, 0.0, 0.7])
        yield call(T(np.ones((3, 1)).astype(m.dtype), m.dtype), [5], [])
        yield call(m.tensor(0, 1), [2], [])


@sample("histogram")
def histogram(m):
    if has_histograms(m):
        even = [T(np.linspace(-3, 3, n).astype(m.dtype), m.dtype) for n in (4, 6)]
        odd = [T(np.array(e, m.dtype), m.dtype) for e in ([-4, -1, 0.5, 3], [-2, 2])]
        yield call(m.tensor(20, 1), even[:1], True, None, False)
        yield call(m.tensor(20, 2), even, True, m.tensor(20), False)
        yield call(m.tensor(20, 2), odd, False, None, True)
        yield call(T(even[0].data[:, None], m.dtype), even[:1], True, None, False)
        yield call(m.tensor(20, 1), even[:1], True, m.tensor(20, low=0.5), True)
        yield call(m.tensor(0, 1), odd[:1], False, None, False)
