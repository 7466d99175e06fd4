"""Hooks of what is given to graph() are those of its calls' gradients, and no part of it."""

from __future__ import annotations

import strata


def doubled(x):
    x.register_hook(lambda g: g * 2)
    return x


def test_of_inputs():
    for make in (lambda: strata.tensor([1.0, 2.0], requires_grad=True), lambda: strata.tensor([1.0, 2.0], requires_grad=True) * 1):
        found = []
        for captured in (False, True):
            x = doubled(make())
            f = lambda x: (x * 3).sin() + x  # noqa: E731
            g = strata.graph(f, x).compile() if captured else f
            found.append(strata.autograd.grad(g(x).sum(), x)[0])
        assert strata.equal(*found)


def test_of_parameters():
    found = []
    for captured in (False, True):
        strata.manual_seed(0)
        module = strata.nn.Linear(4, 4)
        doubled(module.weight)
        called = []
        module.bias.register_hook(lambda g, called=called: called.append(g))
        x = strata.ones(2, 4)
        g = strata.graph(module, x).compile() if captured else module
        assert not called
        g(x).square().sum().backward()
        assert len(called) == 1
        found.append((module.weight.grad, module.bias.grad))
    assert all(strata.equal(a, b) for a, b in zip(*found, strict=True))


def test_of_what_is_made_inside():
    """These are a part of it."""
    f = lambda x: doubled(x * 3).sin()  # noqa: E731
    found = []
    for captured in (False, True):
        x = strata.tensor([1.0, 2.0], requires_grad=True)
        g = strata.graph(f, x).compile() if captured else f
        found.append(strata.autograd.grad(g(x).sum(), x)[0])
    assert strata.equal(*found)
