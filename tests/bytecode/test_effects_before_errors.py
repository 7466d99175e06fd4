"""What a compiled function does before an operator raises by values of tensors is done, once, as when it runs as it is."""

from __future__ import annotations

import contextlib
import io

import pytest
import strata


class Box:
    def __init__(self):
        self.n, self.items = 0, []


def told(function, box, *args):
    """What it prints, raises and leaves."""
    out, error = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            function(box, *args)
        except Exception as e:
            error = type(e), str(e)
    return out.getvalue(), error, box.n, list(box.items)


def indexed(box, x, i):
    box.n += 1
    print("begin")
    box.items.append(tuple(x.shape))
    y = x.sin()[i]
    box.n += 10
    box.items.append("after")
    print("end")
    return y


def inverted(box, x, i):
    box.n += 1
    y = strata.linalg.inv(x)
    box.items.append("inverse")
    strata._dynamo.graph_break()
    box.n += 100
    z = strata.linalg.cholesky(y)
    box.items.append("root")
    return z


def in_a_loop(box, x, i):
    for k in range(3):
        box.items.append(k)
        x = x[i - k]
    return x


def keywords(box, x, *rest, k=3, **more):
    box.n += k
    y = x[rest[0]]
    box.n += 10
    return y


def drawn(box, x, i):
    box.n += 1
    return (x + strata.rand(x.shape))[i]


T = strata.tensor
CASES = {
    indexed: [(strata.arange(4.0), T([0, 1])), (strata.arange(4.0), T([0, 100])), (strata.arange(5.0), T([100])), (strata.arange(6.0), T([5]))],
    inverted: [(strata.eye(2), 0), (strata.zeros(2, 2), 0), (-strata.eye(2), 0), (strata.eye(3), 0)],
    in_a_loop: [(strata.ones(5, 5, 5), T(2)), (strata.ones(5, 5, 5), T(-4)), (strata.ones(5, 5, 5), T(9))],
    keywords: [(strata.arange(4.0), T([0])), (strata.arange(4.0), T([9]))],
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dynamic", [None, True])
def test_as_it_runs(function, dynamic):
    compiled, plain, box = strata.compile(function, dynamic=dynamic), Box(), Box()
    for args in CASES[function]:
        want = told(function, plain, *args)
        assert told(compiled, box, *args) == want
    assert any(told(function, Box(), *args)[1] for args in CASES[function]), "no case raises"


def test_a_run_that_draws_is_not_repeated():
    compiled, box = strata.compile(drawn), Box()
    strata.manual_seed(0)
    with pytest.raises(IndexError):
        compiled(box, strata.ones(3), T([7]))
    after = strata.rand(2)
    strata.manual_seed(0)
    with pytest.raises(IndexError):
        drawn(Box(), strata.ones(3), T([7]))
    assert strata.equal(after, strata.rand(2))


def test_a_run_that_writes_is_not_repeated():
    def f(x, i):
        x.add_(1)
        return x[i]

    compiled, x = strata.compile(f), strata.zeros(3)
    with pytest.raises(IndexError):
        compiled(x, T([7]))
    assert x.tolist() == [1, 1, 1]
