"""Arguments and results of captured functions: keywords, nests, constants, tensors that come twice."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest
import strata

Pair = namedtuple("Pair", "left right")


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and strata.equal(a, b)


def both(g):
    return g, g.compile()


def scaled(x, scale=1.0, *rest, mask=None, options=None):
    y = x.sin() * scale
    for r in rest:
        y = y + r
    return y if mask is None else y * mask + options["shift"]


def test_keywords_are_arguments():
    x, m = strata.randn(5), strata.rand(5)
    for g in both(strata.graph(scaled, x, scale=2.0, mask=m, options={"shift": 1})):
        want = scaled(x, 2.0, mask=m, options={"shift": 1})
        assert same(g(x, scale=2.0, mask=m, options={"shift": 1}), want)
        assert same(g(x, 2.0, options={"shift": 1}, mask=m), want), "by place as by name"
        assert same(g(mask=m, options={"shift": 1}, scale=2.0, x=x), want)
        other = strata.rand(5)
        assert same(g(x, 2.0, mask=other, options={"shift": 1}), scaled(x, 2.0, mask=other, options={"shift": 1}))


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((3.0,), {}, r"argument scale: expected 2\.0, as it was captured, got 3\.0; what is no tensor is part of the graph"),
        ((2,), {}, r"argument scale: expected 2\.0, as it was captured, got 2"),
        ((2.0,), {"options": {"shift": -1}}, r"argument options\['shift'\]: expected 1, as it was captured, got -1"),
        ((2.0,), {"options": {"shift": True}}, r"argument options\['shift'\]: expected 1, .* got True"),
        ((2.0,), {"mask": None}, "argument mask: expected a tensor, as it was captured, got None"),
        ((2.0,), {"options": {"drift": 1}}, r"expected arguments of the form \(\*, \*, mask=\*, options=\{'shift': \*\}\)"),
        ((2.0, 1), {}, r"got \(\*, \*, \*, mask=\*"),
        ((2.0,), {"extra": 1}, "extra="),
    ],
)
def test_other_arguments_are_named(args, kwargs, text):
    x, m = strata.randn(5), strata.rand(5)
    for g in both(strata.graph(scaled, x, 2.0, mask=m, options={"shift": 1})):
        with pytest.raises(ValueError, match=text):
            g(x, *args, **{"mask": m, "options": {"shift": 1}, **kwargs})
        with pytest.raises(ValueError, match="input 1, mask: expected f32"):
            g(x, 2.0, mask=m[:4], options={"shift": 1})


class Named(float):
    def __str__(self):
        return "a number"


def test_constants_are_compared_by_their_bits():
    def f(x, value):
        return x * 1

    x = strata.ones(2)
    for value, others in ((0.0, [-0.0, 0, False]), (Named(0.0), [Named(-0.0), 0.0]), (float("nan"), [0.0]), (1 + 0j, [complex(1, -0.0), 1]), ("a", ["b", b"a", None]), (strata.float32, [strata.float64])):
        g = strata.graph(f, x, value)
        g(x, value)
        g(x, type(value)(value) if type(value) in (float, complex) else value)
        for other in others:
            with pytest.raises(ValueError, match="argument value: expected"):
                g(x, other)


def test_a_result_that_is_given_twice_is_one_object():
    def f(x, w):
        y = x * w
        return {"first": y, "nest": [y, (y.sum(), y)], "given": x, "number": 3, "none": None}

    x, w = strata.randn(4), strata.randn(4, requires_grad=True)
    for g in both(strata.graph(f, x, w)):
        r = g(x, w)
        assert r["first"] is r["nest"][0] is r["nest"][1][1] and r["given"] is x
        assert same(r["first"], x * w) and r["number"] == 3 and r["none"] is None
    (slope,) = strata.autograd.grad((r["first"] + r["nest"][0]).sum(), w)
    assert same(slope, x * 2)
    a, b = strata.graph(lambda x: (x.sin(),) * 2, x).compile()(x)
    assert a is b


def test_results_that_are_inputs_are_these():
    w = strata.randn(3, requires_grad=True)

    def f(x):
        return x, w, w * x

    x = strata.randn(3)
    for g in both(strata.graph(f, x)):
        a, b, c = g(x)
        assert a is x and b is w and same(c.detach(), (w * x).detach())
    (slope,) = strata.autograd.grad(b.sum() + c.sum(), w)
    assert same(slope, 1 + x)
    y = strata.graph(lambda x: x, x).compile()(x)
    assert y is x

    def write(x):
        return x.add_(1)

    y = strata.graph(write, x.clone()).compile()(x)
    assert y is x


def test_nests_of_all_kinds():
    def f(pair, table, items):
        return Pair(pair.left + items[0], OrderedDict(b=table["b"] * 2, a=[table["a"]]))

    a, b, c, d = (strata.randn(3) for _ in range(4))
    for g in both(strata.graph(f, Pair(a, 1), {"a": c, "b": d}, [b])):
        r = g(Pair(b, 1), {"a": d, "b": c}, [a])
        assert type(r) is Pair and list(r.right) == ["b", "a"]
        assert same(r.left, b + a) and same(r.right["b"], c * 2) and r.right["a"][0] is d
        with pytest.raises(ValueError, match=r"argument pair\.right: expected 1, .* got 2"):
            g(Pair(a, 2), {"a": c, "b": d}, [b])
        with pytest.raises(ValueError, match=r"input 3, items\[0\]: expected f32\[3\]"):
            g(Pair(a, 1), {"a": c, "b": d}, [b.double()])
        with pytest.raises(ValueError, match="expected arguments of the form"):
            g((a, 1), {"a": c, "b": d}, [b])


def test_a_tensor_that_is_given_twice():
    def f(x, y):
        return (x * y).sum()

    x = strata.randn(3, requires_grad=True)
    g = strata.graph(f, x, x)
    for h in both(g):
        assert same(h(x, x).detach(), f(x, x).detach())
        with pytest.raises(ValueError, match="argument y: expected the same tensor as x, as it was captured"):
            h(x, strata.randn(3))
    (slope,) = strata.autograd.grad(g.compile()(x, x), x)
    assert same(slope, (x * 2).detach())
    y = strata.randn(3, requires_grad=True)
    apart = strata.graph(f, x, y).compile()
    (slope,) = strata.autograd.grad(apart(x, x), x)
    assert same(slope, (x * 2).detach()), "captured apart, they may be one"


def test_gradients_go_to_the_arguments_of_the_call():
    def step(x):
        x.grad = None
        (x * x).sum().backward()
        return x.grad

    x = strata.randn(3, requires_grad=True)
    for g in both(strata.graph(step, x)):
        y = strata.randn(3, requires_grad=True)
        r = g(y)
        assert r is y.grad and same(y.grad, (y * 2).detach())


def test_functions_without_names():
    x = strata.randn(3)
    g = strata.graph(lambda *xs, **more: xs[0] + more["b"], x, b=x.clone())
    assert [n.span for n in g.nodes[:2]] == ["args[0]", "b"]
    import functools

    h = strata.graph(functools.partial(lambda a, b: a - b, x), x.clone())
    assert same(h(x * 2), x - x * 2)
    with pytest.raises(ValueError, match=r"input 0, args\[0\]"):
        h(x.double())


def test_what_several_results_come_in_is_a_nest():
    x = strata.randn(3, 4)
    g = strata.graph(lambda x: {"max": x.max(1)}, x)
    y = strata.randn(3, 4)
    for found in (g(y)["max"], g.compile()(y)["max"]):
        assert type(found) is type(y.max(1)) and strata.equal(found.values, y.max(1).values) and strata.equal(found.indices, y.max(1).indices)
    with_max = strata.utils._pytree.tree_map(lambda t: t + 1, y.max(1))
    assert type(with_max) is type(y.max(1)) and strata.equal(with_max.values, y.max(1).values + 1)
