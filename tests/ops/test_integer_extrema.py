"""Largest and smallest integers and the first places of these, against Python: whatever the dtype, the layout and the threads."""

from __future__ import annotations

import pytest
import strata

DTYPES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
SHAPES = [(3, 5), (40, 1), (2, 300), (5, 1000), (300, 17), (1030, 33), (64, 2100), (2, 70_000), (17, 16)]


@pytest.fixture(params=[("base", 1), (None, 1), (None, 2)], ids=lambda p: f"{p[0]}-{p[1]}", autouse=True)
def _machine(request):
    isa, threads = request.param
    have, before = strata._C.cpu_capability(), strata.get_num_threads()
    strata._C.set_cpu_capability(isa or have)
    strata.set_num_threads(threads)
    yield
    strata._C.set_cpu_capability(have)
    strata.set_num_threads(before)


def drawn(name, *sizes):
    """Few different values, so that many are equal, and both ends."""
    low, high = DTYPES[name]
    steps = strata.randint(0, 6, sizes, generator=strata.Generator().manual_seed(sum(sizes)))
    table = strata.tensor([low, low + 1, -1 if low else 7, 0, 1, high], dtype=getattr(strata, name))
    return table[steps]


def check(x, rows):
    """Reductions over dim 1 of x, whose elements are `rows`."""
    largest, smallest = [max(r) for r in rows], [min(r) for r in rows]
    first = [r.index(m) for r, m in zip(rows, largest, strict=True)]
    last = [r.index(m) for r, m in zip(rows, smallest, strict=True)]
    assert x.amax(1).tolist() == largest
    assert x.amin(1).tolist() == smallest
    assert x.argmax(1).tolist() == first
    assert x.argmin(1).tolist() == last
    assert [a.tolist() for a in x.max(1)] == [largest, first]
    assert [a.tolist() for a in x.min(1)] == [smallest, last]
    assert [a.tolist() for a in strata.aminmax(x, dim=1)] == [smallest, largest]
    assert (x.max().item(), x.min().item()) == (max(largest), min(smallest))


@pytest.mark.parametrize("name", DTYPES)
def test_extrema(name):
    for shape in SHAPES:
        x = drawn(name, *shape)
        rows = x.tolist()
        check(x, rows)
        check(x.t().contiguous().t(), rows)
    wide = drawn(name, 50, 130)
    check(wide[:, 1::2], [r[1::2] for r in wide.tolist()])
    check(wide[:, 3:], [r[3:] for r in wide.tolist()])
    cube = drawn(name, 7, 20, 70)
    for k, plane in enumerate(cube.tolist()):
        assert cube.amax(1)[k].tolist() == [max(c) for c in zip(*plane, strict=True)]
        assert cube.argmin(1)[k].tolist() == [c.index(min(c)) for c in zip(*plane, strict=True)]
    flat = [e for plane in cube.tolist() for r in plane for e in r]
    assert cube.argmax().item() == flat.index(max(flat))
