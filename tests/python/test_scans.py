"""scan, associative_scan, map and foreach_map: values recorded from PyTorch 2.13, eagerly, compiled and with gradients."""

from __future__ import annotations

import pytest
import strata
from strata._higher_order_ops.associative_scan import associative_scan
from strata._higher_order_ops.foreach_map import foreach_map
from strata._higher_order_ops.map import map as over_slices
from strata._higher_order_ops.scan import scan

X = strata.arange(6.0).view(3, 2)


def add_and_multiply(carry, x):
    return carry + x, carry * x


@pytest.mark.parametrize("options, carry, ys", [
    ({}, [6.0, 9.0], [[0.0, 0.0], [0.0, 3.0], [8.0, 20.0]]),
    ({"reverse": True}, [6.0, 9.0], [[0.0, 8.0], [8.0, 15.0], [0.0, 0.0]]),
])  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_scan(options, carry, ys, compiled):
    def f(x):
        return scan(add_and_multiply, strata.zeros(2), x, **options)

    found = (strata.compile(f, fullgraph=True) if compiled else f)(X)
    assert found[0].tolist() == carry and found[1].tolist() == ys


def test_scan_over_another_dim_and_of_nests():
    carry, ys = scan(add_and_multiply, strata.zeros(3), X, dim=1)
    assert carry.tolist() == [1.0, 5.0, 9.0] and ys.tolist() == [[0.0, 0.0], [0.0, 6.0], [0.0, 20.0]]
    carry, (a, b) = scan(lambda c, x: ({"s": c["s"] + x[0]}, (c["s"] * 1, x[1] * 2)), {"s": strata.zeros(2)}, (X, X))
    assert carry["s"].tolist() == [6.0, 9.0] and a.tolist() == [[0.0, 0.0], [0.0, 1.0], [2.0, 4.0]] and b.tolist() == (X * 2).tolist()


def test_gradients_flow_through_every_turn():
    w = strata.ones(2, requires_grad=True)
    carry, ys = scan(lambda c, x: (c * w + x, c * x), strata.ones(2), X)
    (ys.sum() + carry.sum()).backward()
    v = strata.ones(2, requires_grad=True)
    c, total = strata.ones(2), 0
    for x in X:
        total, c = total + (c * x).sum(), c * v + x
    (total + c.sum()).backward()
    assert w.grad.tolist() == v.grad.tolist()


@pytest.mark.parametrize("call, message", [
    (lambda: scan(3, strata.zeros(2), X), "Combine_fn must be a callable"),
    (lambda: scan(add_and_multiply, 1.0, X), "expected tensors in a nest as init"),
    (lambda: scan(add_and_multiply, strata.zeros(2), strata.zeros(0, 2)), "must have a scan dimension > 0"),
    (lambda: scan(lambda c, x: (c[:1], x), strata.zeros(2), X), "expected combine_fn to give a carry like init"),
    (lambda: scan(lambda c, x: ((c, c), x), strata.zeros(2), X), "a carry of init's form"),
    (lambda: over_slices(lambda x: x, 3), "expected tensors as leaves of xs"),
    (lambda: over_slices(lambda x: x, (X, strata.ones(2))), "expected the leaves of xs to have one size"),
    (lambda: associative_scan(lambda a, b: a[:, :1], X, 0), "expected combine_fn to give slices of shape"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("mode", ["pointwise", "generic"])
@pytest.mark.parametrize("dim", [0, 1])
def test_associative_scan(mode, dim):
    x = strata.rand(5, 3)
    added, product = associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, x + 1), dim, combine_mode=mode)
    assert strata.allclose(added, x.cumsum(dim)) and strata.allclose(product, (x + 1).cumprod(dim))
    backwards = associative_scan(lambda a, b: a + b, x, dim, reverse=True, combine_mode=mode)
    assert strata.allclose(backwards, x.flip(dim).cumsum(dim).flip(dim))


def test_associative_scan_of_matrices_keeps_their_order():
    x = strata.rand(5, 3, 3)
    products = associative_scan(lambda a, b: a @ b, x, 0, combine_mode="generic")
    assert strata.allclose(products[4], x[0] @ x[1] @ x[2] @ x[3] @ x[4], atol=1e-5)


def test_map_and_foreach_map():
    a, b = over_slices(lambda x, y: (x + y, x * 2), X, strata.tensor(1.0))
    assert a.tolist() == (X + 1).tolist() and b.tolist() == (X * 2).tolist()
    assert [t.tolist() for t in foreach_map(strata.mul, [X[0], X[1]], 2.0)] == [[0.0, 2.0], [4.0, 6.0]]
    with pytest.raises(ValueError, match="lists of one length"):
        foreach_map(strata.add, [X], [X, X])
