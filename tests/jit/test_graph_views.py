"""Results that are views stay views: of an input, or of another result, so that writes through them have eager's history. What
may refuse values is not left out. Lines of operators on large tensors, for which the interpreter lock is given up, are known."""

from __future__ import annotations

import re

import pytest
import strata


def on_copy(write, f, x):
    """f on something with a history, a write into what comes of it, the gradient."""
    leaf = x.clone().requires_grad_()
    made = leaf * 1
    out = f(made)
    kept = write(made, out)
    kept.sum().backward()
    return leaf.grad


CASES = {
    "transposed": lambda x: x.t(),
    "row": lambda x: x[1],
    "slice of a view": lambda x: x.t()[1:, ::2],
    "expanded": lambda x: x[:, :1].unsqueeze(0),
    "real": lambda x: strata.view_as_complex(x[:, :2]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_view_of_an_input(name):
    f, x = CASES[name], strata.rand(4, 4)
    compiled = strata.graph(f, (x * 1).requires_grad_()).compile()

    def write(made, out):
        out.mul_(3)
        return made

    assert strata.equal(on_copy(write, compiled, x), on_copy(write, f, x))
    view = compiled(x)
    assert view._is_view() and view._base is x and f(x)._is_view()


def test_a_view_of_another_result():
    def f(x):
        y = x * 2
        return y[0], y, y.t()[1]

    x = strata.rand(3, 3)
    compiled = strata.graph(f, x.clone().requires_grad_()).compile()
    for at, seen in ((0, 1), (1, 0), (2, 1), (0, 2)):

        def write(made, out, at=at, seen=seen):
            out[at].mul_(3)
            return out[seen]

        assert strata.equal(on_copy(write, compiled, x), on_copy(write, f, x)), (at, seen)


def test_a_view_of_a_leaf_is_not_written():
    leaf = strata.rand(3, 3, requires_grad=True)
    compiled = strata.graph(lambda x: x[0], leaf).compile()
    with pytest.raises(RuntimeError, match="leaf"):
        compiled(leaf).mul_(3)


def test_what_is_no_view_stays_none():
    x = strata.rand(3, 3, requires_grad=True)
    for f in (lambda x: x * 2, lambda x: x.detach(), lambda x: x):
        assert strata.graph(f, x).compile()(x)._is_view() == f(x)._is_view()


@pytest.mark.parametrize("f", [lambda x, y: x // y, lambda x, y: x % y, strata.fmod, lambda x, y: 5 // y,
                               lambda x, y: (x * 1).floor_divide_(y), lambda x, y: (x // y).sum()])
def test_a_divisor_of_zero_is_refused_though_nobody_wants_the_quotient(f):
    x, y = strata.tensor([1, 2]), strata.tensor([1, 1])
    compiled = strata.graph(lambda x, y: (f(x, y), x + 1)[1], x, y).compile()
    assert compiled(x, y).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(x, strata.tensor([0, 1]))


def test_lines_of_a_backward_over_large_tensors():
    line = r"test_graph_views\.py:(\d+) in forward"

    def forward(x):
        return (x.sin() * x).exp()

    def lines(n):
        text = str(strata.graph(forward, strata.rand(n, requires_grad=True)))
        return re.findall(line, text)

    assert lines(100_000) == lines(10) and len(set(lines(10))) == 1


def test_zeros_are_a_gradient_of_what_they_come_from():
    """Where only some of the gradients are differentiated again: that of x ** 0 is there, and zero, as in eager."""

    def f(x, y):
        return (x * 1) ** 1, strata.minimum(y * 1, x * 1e-5)

    x, y = strata.rand(3, requires_grad=True), strata.rand(3, requires_grad=True)
    found = []
    for g in (f, strata.graph(f, x, y).compile()):
        out = g(x, y)
        first = strata.autograd.grad(out, [x, y], [strata.ones_like(t) for t in out], create_graph=True)
        found.append(strata.autograd.grad([first[0]], [x, y], [strata.ones(3)], allow_unused=True))
    assert [t is None or t.tolist() for t in found[0]] == [t is None or t.tolist() for t in found[1]] == [[0, 0, 0], True]
