"""Gradients of tensors that are used inside of a compiled function and outside: added in eager's order, to eager's bits."""

from __future__ import annotations

import pytest
import strata
import strata.nn.functional as F

DTYPES = [strata.float32, strata.bfloat16, strata.float16]
FUNCTIONS = {
    "two": lambda x: x.sin() + x.exp(),
    "three": lambda x: x.sin() * 2 + x.exp() * x.cos(),
    "row sums": lambda x: x.softmax(-1) + x.mean(-1, keepdim=True),
    "products": lambda x: F.gelu(x @ x.t()) @ x,
    "sums inside": lambda x: (x.tanh() + 0.5).square() + (x * 3).sigmoid() * x,
}


def made(f, how: str, *like):
    return {"eager": lambda: f, "compile": lambda: strata.compile(f), "graph": lambda: strata.graph(f, *like).compile()}[how]()


def same(one, other):
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None) and (a is None or strata.equal(a, b))


def residual(g, x):
    return (x + g(x)).square().sum()


def before_and_after(g, x):
    return ((x * 0.3).exp() * g(x) * x.cos()).sum()


def twice(g, x):
    return (g(x) * g(x + 1) * x).sum()


def chained(g, x):
    for _ in range(3):
        x = x + g(x) * 0.1
    return x.square().sum()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("how", ["compile", "graph"])
@pytest.mark.parametrize("use", [residual, before_and_after, twice, chained])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_an_argument(name, use, how, dtype):
    strata.manual_seed(2)
    start = (strata.randn(6, 32) * 0.1).to(dtype)
    found = []
    for way in ("eager", how):
        x = start.clone().requires_grad_()
        middle = x * 1.5  # no leaf
        g = made(FUNCTIONS[name], way, middle)
        found.append(strata.autograd.grad(use(g, middle) + use(g, x), x))
    same(*found)


@pytest.mark.parametrize("how", ["compile", "graph"])
def test_of_an_argument_that_is_a_result(how):
    strata.manual_seed(3)
    start = strata.randn(300)
    for f in (lambda x: (x.sin(), x.exp(), x), lambda x: (x, x.sin(), x.exp()), lambda x: (x.sin(), x.cos(), x.unsqueeze(1))):
        found = []
        for way in ("eager", how):
            x = start.clone().requires_grad_()
            results = made(f, way, x)(x)
            score = sum((r * strata.arange(1.0, 301).reshape(r.shape).sin() * (i + 1.3)).sum() for i, r in enumerate(results))
            found.append(strata.autograd.grad(score, x))
        same(*found)


@pytest.mark.parametrize("how", ["compile", "graph"])
def test_of_fewer_results(how):
    """Where a result has no gradient, terms are those of the others."""
    strata.manual_seed(4)
    start = strata.randn(300)
    f = lambda x: (x.sin() + x.exp() * x, x.cos())  # noqa: E731
    for picked in ((0,), (1,), (0, 1)):
        found = []
        for way in ("eager", how):
            x = start.clone().requires_grad_()
            results = made(f, way, x)(x)
            found.append(strata.autograd.grad(sum((results[i] * (x + 2)).sum() for i in picked), x))
        same(*found)


@pytest.mark.parametrize("how", ["compile", "graph"])
def test_of_weights(how):
    """Tied ones: used twice inside, and once more outside; into .grad, over two passes."""
    strata.manual_seed(5)
    weight, rows = strata.randn(16, 16), strata.randn(8, 16)
    f = lambda w, x: F.linear(F.linear(x, w).tanh(), w)  # noqa: E731
    found = []
    for way in ("eager", how):
        w = weight.clone().requires_grad_()
        g = made(f, way, w, rows)
        for _ in range(2):
            (F.linear(g(w, rows), w).square().mean() + w.square().sum()).backward()
        found.append([w.grad])
    same(*found)
