"""set_grad_enabled as a statement: what it has set at a stretch's end is an effect of the call."""

import pytest
import strata


def off_and_on(x, flag):
    strata.set_grad_enabled(False)
    y = x * 2
    strata.set_grad_enabled(True)
    return y + x


def lasts(x, flag):
    strata.set_grad_enabled(flag)
    return x * 2


def restores(x, flag):
    y, before = x * 3, strata.is_grad_enabled()
    strata.autograd.set_grad_enabled(flag)
    z = (x * x).sum()
    strata._C._set_grad_enabled(before)
    return y * z


def as_a_manager(x, flag):
    manager = strata.set_grad_enabled(flag)
    z = x * 3
    with manager:
        w = z * 2
    return z + w


def in_a_block(x, flag):
    with strata.no_grad():
        strata.set_grad_enabled(flag)
        y = x * 2
    return y * x


@strata.set_grad_enabled(False)
def decorated(x):
    return x * 2


def of_decorated(x, flag):
    return decorated(x) + x


def between_stretches(x, flag):
    y = x * 2
    strata.set_grad_enabled(flag)
    n = int(x.detach().sum())
    return x * y * n


def views(x, flag):
    y = x * 2
    strata.set_grad_enabled(flag)
    return y[:2], y[1:]


ONE_GRAPH = [off_and_on, lasts, restores, as_a_manager, in_a_block, of_decorated]


def outcome(f, start, flag, n):
    strata.set_grad_enabled(start)
    try:
        x = strata.arange(n).float().requires_grad_(True)
        y = f(x, flag)
        after = strata.is_grad_enabled()
    finally:
        strata.set_grad_enabled(True)
    found = []
    for t in y if isinstance(y, tuple) else (y,):
        slope = strata.autograd.grad(t.sum(), x, allow_unused=True, retain_graph=True)[0] if t.requires_grad else None
        found.append((t.tolist(), t.requires_grad, None if slope is None else slope.tolist()))
    return found, after


@pytest.mark.parametrize("f", [*ONE_GRAPH, between_stretches, views])
@pytest.mark.parametrize("dynamic", [None, True])
def test_equal_eager(f, dynamic):
    compiled = strata.compile(f, dynamic=dynamic)
    for flag in (True, False, True, False):
        for start in (True, False):
            for n in (4, 5, 6):
                assert outcome(compiled, start, flag, n) == outcome(f, start, flag, n)


@pytest.mark.parametrize("f", ONE_GRAPH)
def test_in_one_graph(f):
    for flag in (True, False):
        assert outcome(strata.compile(f, fullgraph=True), True, flag, 3) == outcome(f, True, flag, 3)
