"""Views among a compiled function's results: their gradients come in eager's order, and writes are known to their base."""

from __future__ import annotations

import pytest
import strata

FUNCTIONS = {
    "first": lambda x: (x.reshape(-1), x.sin(), x.exp()),
    "between": lambda x: (x.sin(), x.t(), x.exp() * 0.7),
    "last": lambda x: (x.sin(), x.exp(), x.view(-1)[3:]),
    "two": lambda x: (x.reshape(-1), x.sin(), x[1:], x.cos()),
    "of a result": lambda x: ((y := x.sin()), y.view(-1), y.exp(), y[2]),
    "of a view": lambda x: (x.exp(), x.t()[1:], (x * x).cos()),
}


def eager_and_compiled(f):
    return f, strata.compile(f)


@pytest.mark.parametrize("dtype", [strata.float32, strata.float16], ids=str)
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, leaf, dtype):
    strata.manual_seed(5)
    start = (strata.randn(24, 24) * 0.5).to(dtype)
    for used in [None, 0, 1, 2]:  # all results, or one alone
        found = []
        for f in eager_and_compiled(FUNCTIONS[name]):
            x = start.clone().requires_grad_()
            y = x if leaf else x * 1.1
            score = y.tanh().sum()
            for i, r in enumerate(f(y)):
                if used is None or i == used:
                    score = score + (r * strata.arange(1.0, 1 + r.numel()).reshape(r.shape).sin().to(dtype)).sum()
            found.append(strata.autograd.grad(score + y.square().sum(), x)[0])
        if name == "of a result":  # its view's part is added before what the graph reads of it
            strata.testing.assert_close(*found, rtol=1e-2 if dtype == strata.float16 else 1e-5, atol=1e-2)
        else:
            assert strata.equal(*found), used


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("what", ["the view", "its base", "unrecorded"])
def test_writes(name, what):
    strata.manual_seed(6)
    start = strata.randn(12, 12)
    found = []
    for f in eager_and_compiled(FUNCTIONS[name]):
        x = start.clone().requires_grad_()
        y = x * 1.1
        results = f(y)
        view = next(r for r in results if r._is_view())
        base = view._base
        assert base is (results[0] if name == "of a result" else y)
        if what == "the view":
            view.mul_(2.0)
        elif what == "its base":
            base.mul_(3.0)
        else:
            with strata.no_grad():
                base.add_(1.0)
        kept = [r for r in results if r._base is base or r is base]  # others were saved before the write
        score = sum((r * strata.arange(1.0, 1 + r.numel()).reshape(r.shape).cos()).sum() for r in [*kept, y])
        found.append([*kept, strata.autograd.grad(score, x)[0] if what != "unrecorded" or name != "of a result" else x])
    for a, b in zip(*found, strict=True):
        assert strata.equal(a, b) and a.requires_grad == b.requires_grad


def test_hooks_and_second_derivatives():
    found = []
    for f in eager_and_compiled(lambda x: (x.sin(), x.view(-1), x.exp())):
        x = strata.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        seen = []
        one, view, two = f(x)
        view.register_hook(lambda g, seen=seen: (seen.append(g), g * 2)[1])
        view.retain_grad()
        (first,) = strata.autograd.grad((one.sum() + (view * view).sum() * two.mean()), x, create_graph=True)
        (second,) = strata.autograd.grad(first.square().sum(), x)
        found.append([first, second, *seen[:1]])
    for a, b in zip(*found, strict=True):
        assert strata.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_what_a_view_of_a_result_hangs_on():
    """Hooks of the result, and whoever asks for its gradient, see what comes through the view."""
    found = []
    for f in eager_and_compiled(lambda x: ((y := x * 2), y.view(-1))):
        x = strata.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        one, view = f(x * 1.0)
        one.register_hook(lambda g: g * 10)
        one.retain_grad()
        view.sin().sum().backward()
        found.append([x.grad, one.grad])
        one, view = f(x * 1.0)
        found[-1] += [strata.autograd.grad((view * one.reshape(-1)).sum(), one)[0], one, view]
    for a, b in zip(*found, strict=True):
        assert strata.equal(a, b)
