"""Contributions to one place, in ascending order, form chains of 1,024; the first begins with what stands there, and the
chains' results are added in order. Whatever the layout, the threads and where the places lie."""

from __future__ import annotations

import numpy as np
from table import pytest, strata

CHAIN = 1024


def chained(start, places, values, combine=np.add):
    """Of lines of values, along their first dim: start[places[i]] += values[i], in the type that sums are taken in."""
    out = start.copy()
    for place in np.unique(places):
        mine = values[places == place]
        total = None
        for first in range(0, len(mine), CHAIN):
            chain = [out[place], *mine[:CHAIN]] if first == 0 else mine[first:first + CHAIN]
            result = chain[0]
            for v in chain[1:]:
                result = combine(result, v)
            total = result if total is None else combine(total, result)
        out[place] = total
    return out


def numbers(shape, seed, dtype=np.float32):
    made = np.random.default_rng(seed).standard_normal(shape)
    return (made + 1j * np.random.default_rng(seed + 1).standard_normal(shape)).astype(dtype) if dtype == np.complex64 else made.astype(dtype)


def same(ours, theirs):
    assert ours.numpy().tobytes() == np.ascontiguousarray(theirs).tobytes()


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2048, 2049, 5000])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_index_add(count, rows, dtype):
    start, values = numbers(rows, 1, dtype), numbers(count, 2, dtype)
    places = np.random.default_rng(3).integers(0, rows, count)
    want = chained(start, places, values)
    got = strata.tensor(start).index_add(0, strata.tensor(places), strata.tensor(values))
    same(got, want)
    inplace = strata.tensor(np.stack([start, start], -1))[:, 0]
    inplace.index_add_(0, strata.tensor(places), strata.tensor(values))
    same(inplace.contiguous(), want)
    same(strata.tensor(start).scatter_add(0, strata.tensor(places), strata.tensor(values)), want)


@pytest.mark.parametrize("width", [1, 5, 64])
@pytest.mark.parametrize("dim", [0, 1])
def test_lines(width, dim):
    """Many dims, contiguous and turned; more places than chains."""
    count, rows = 3000, 2
    start, values = numbers((rows, width), 5), numbers((count, width), 6)
    places = np.random.default_rng(7).integers(0, rows, count)
    want = chained(start, places, values)
    turned = [strata.tensor(np.ascontiguousarray(a.T if dim else a)) for a in (start, values)]
    for laid in (turned, [t.t().contiguous().t() for t in turned]):
        got = laid[0].index_add(dim, strata.tensor(places), laid[1])
        same(got.t().contiguous() if dim else got.contiguous(), want)
    column = np.repeat(places[:, None], width, 1)
    index = strata.tensor(np.ascontiguousarray(column.T if dim else column))
    got = turned[0].scatter_add(dim, index, turned[1])
    same(got.t().contiguous() if dim else got, want)


def test_halves_are_summed_in_float32():
    count = 2500
    start, values = numbers(1, 8), numbers(count, 9)
    halves = strata.tensor(values).to(strata.bfloat16)
    first = strata.tensor(start).to(strata.bfloat16)
    want = chained(first.float().numpy(), np.zeros(count, int), halves.float().numpy())
    got = first.index_add(0, strata.zeros(count, dtype=strata.int64), halves)
    assert strata.equal(got, strata.tensor(want).to(strata.bfloat16))


def test_threads_and_places_do_not_matter():
    """Where many places show at a glance that no chain is full, and where one place has most."""
    count = 100_000
    values = numbers(count, 10)
    for places in (np.random.default_rng(11).integers(0, 5_000, count), np.random.default_rng(12).integers(0, 5_000, count) // 4_000):
        start = strata.zeros(5_000)
        want = chained(start.numpy(), places, values)
        threads = strata.get_num_threads()
        try:
            for n in (1, 2):
                strata.set_num_threads(n)
                same(start.index_add(0, strata.tensor(places), strata.tensor(values)), want)
        finally:
            strata.set_num_threads(threads)


@pytest.mark.parametrize("name", ["even", "sorted", "last", "one"])
@pytest.mark.parametrize("most", [300, 5000])
def test_lines_divided_by_their_places(name, most):
    """Threads that own places give the bits of one; so do those that can't, since most lines go to one place."""
    count, rows, width = 6000, 70, 40
    places = np.random.default_rng(13).integers(0, rows, count)
    places = {"even": places, "sorted": np.sort(places), "last": np.maximum(places, rows - 3), "one": np.where(places, 5, places)}[name][:most]
    values = numbers((len(places), width), 14)
    index, start = strata.tensor(places), numbers((rows, width), 15)
    want = chained(start, places, values)
    put = start.copy()
    put[places] = values
    threads = strata.get_num_threads()
    try:
        for n in (1, 2, 3, 7):
            strata.set_num_threads(n)
            ours, lines = strata.tensor(start), strata.tensor(values)
            same(ours.index_add(0, index, lines), want)
            same(ours.index_copy(0, index, lines), put)
            turned = ours.unsqueeze(0).expand(3, rows, width).contiguous().index_add(1, index, lines.expand(3, len(places), width))
            same(turned[2].contiguous(), want)
            filled = ours.index_fill(0, index - rows * (index % 2), 2.5)
            same(filled, np.where(np.isin(np.arange(rows), places)[:, None], np.float32(2.5), start))
    finally:
        strata.set_num_threads(threads)


@pytest.mark.parametrize("count", [5, 3000])
@pytest.mark.parametrize("width", [None, 1, 3, 40])
@pytest.mark.parametrize("bad", [-1, 2, 1 << 40])
def test_a_place_outside(count, width, bad):
    """Among one contribution or several chains, in lines of any width: an error, and nothing is written in place."""
    places = strata.zeros(count, dtype=strata.int64)
    places[count - 2] = bad
    shape = (2,) if width is None else (2, width)
    values = strata.ones(count, *shape[1:])
    for dtype in (strata.float32, strata.bfloat16, strata.int32):
        start = strata.ones(shape, dtype=dtype)
        column = places if width is None else places[:, None].expand(count, width)
        for call in (lambda t, v: t.index_add(0, places, v), lambda t, v: t.index_add_(0, places, v),
                     lambda t, v, c=column: t.scatter_add(0, c, v), lambda t, v, c=column: t.scatter_add_(0, c, v),
                     lambda t, v, c=column: t.scatter(0, c, v), lambda t, v, c=column: t.scatter_(0, c, 7),
                     lambda t, v: t.index_copy(0, places, v), lambda t, v: t.index_copy_(0, places, v)):
            with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
                call(start, values.to(dtype))
            assert strata.equal(start, strata.ones(shape, dtype=dtype))
