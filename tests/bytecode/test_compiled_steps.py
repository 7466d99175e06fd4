"""Compiled steps that break: their gradients are eager's."""

from __future__ import annotations

import pytest
import strata


def test_gradients_reset_before_a_break_do_not_grow():
    """What a first call found to be None already is reset at later calls, too."""
    for kind in ("compiled", "disabled", "prints"):
        layer = strata.nn.Linear(2, 2)
        optimizer = strata.optim.SGD(layer.parameters(), lr=0.0)

        def prints(x, layer=layer):
            with open("/dev/null"):
                print(end="")
            return layer(x)

        inner = {"compiled": strata.compile(layer), "disabled": strata.compiler.disable(lambda x, layer=layer: layer(x)), "prints": prints}[kind]

        def step(x, optimizer=optimizer, inner=inner):
            optimizer.zero_grad()
            loss = inner(x).sum()
            loss.backward()
            optimizer.step()
            return loss

        compiled = strata.compile(step)
        for _ in range(4):
            compiled(strata.ones(1, 2))
            assert layer.bias.grad.equal(strata.ones(2)), kind


def test_a_parameter_that_is_written_and_read_is_eagers():
    """An average of weights, written without gradients, and a result that is differentiable in it."""
    model, average = strata.nn.Linear(2, 2), strata.nn.Linear(2, 2)

    def f(decay):
        with strata.no_grad():
            for p, q in zip(model.parameters(), average.parameters()):  # noqa: B905
                q.mul_(decay).add_(p, alpha=1 - decay)
        return sum(q.sum() for q in average.parameters())

    start = [q.detach().clone() for q in average.parameters()]
    seen = []
    for g in (f, strata.compile(f)):
        with strata.no_grad():
            for q, s in zip(average.parameters(), start, strict=True):
                q.copy_(s)
        average.zero_grad()
        results = [g(d) for d in (0.9, 0.8, 0.8)]
        results[-1].backward()
        seen.append([r.item() for r in results] + [v for q in average.parameters() for v in (q.tolist(), q.grad.tolist())])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "RAdam", "NAdam"])
def test_a_step_with_gradients_of_a_backward_outside(kind):
    """What clips and steps reads each call's .grad; the same ones, new ones, and ones that are reset to zeros in place."""

    def run(way):
        strata.manual_seed(3)
        net = strata.nn.Sequential(strata.nn.Linear(3, 4), strata.nn.Tanh(), strata.nn.Linear(4, 1))
        optimizer = getattr(strata.optim, kind)(net.parameters(), lr=0.1)
        optimizer.init_state()

        def clip():
            return strata.nn.utils.clip_grad_norm_(net.parameters(), 0.5)

        def step():
            optimizer.step()

        clip, step = way(clip), way(step)
        noted = []
        for i in range(6):
            net(strata.randn(5, 3)).square().sum().backward()
            noted.append(clip().item())
            step()
            optimizer.zero_grad(set_to_none=i % 2 == 0)
        entries = [len(f._strata_compiled.start.entries) for f in (clip, step) if way is not plain]
        return noted + [p.tolist() for p in net.parameters()], entries

    def plain(f):
        return f

    want, _ = run(plain)
    got, entries = run(lambda f: strata.compile(f, fullgraph=True))
    assert got == want
    assert entries == [1, 1]


def test_a_result_beside_a_gradient_that_is_read_has_a_gradient():
    w = strata.arange(4.0).requires_grad_()
    x = strata.ones(4)
    w.grad = strata.full((4,), 2.0)
    compiled = strata.compile(lambda x, w: (x * w * w.grad).sum())
    for scale in (2.0, 3.0):
        w.grad = strata.full((4,), scale)
        (slope,) = strata.autograd.grad(compiled(x, w), w)
        assert slope.tolist() == [scale] * 4
    graph = strata.graph(lambda x, w: (x * w * w.grad).sum(), x, w).compile()
    (slope,) = strata.autograd.grad(graph(x, w), w)
    assert slope.tolist() == [3.0] * 4


@pytest.mark.parametrize("function", [strata.relu, strata.nn.functional.relu, strata.nn.functional.gelu, strata.Tensor.relu])
def test_functions_of_the_library_compile(function):
    x = strata.tensor([-1.0, 2.0])
    compiled = strata.compile(function, fullgraph=True)
    assert compiled(x).equal(function(x))
    assert len(compiled._strata_compiled.start.entries) == 1


@pytest.mark.parametrize("f", [strata.prod, lambda x: x.prod(1).sum(), strata.linalg.det], ids=["prod", "rows", "det"])
def test_derivatives_that_values_choose_are_eagers(f):
    """A product's derivative is another formula where an element is 0, which the capture does not know."""

    def step(x):
        f(x).backward()
        return x

    for g in (f, step):
        compiled = strata.compile(g)
        for zeros in (0, 1, 2):
            slopes = []
            for run in (g, compiled):
                x = strata.arange(1.0, 10).reshape(3, 3).sqrt()
                x[:zeros] = 0
                y = run(x.requires_grad_())
                if g is f:
                    y.backward()
                slopes.append(x.grad)
            assert strata.equal(*slopes) and slopes[0].isfinite().all()


@pytest.mark.parametrize("cleared", [False, True])
def test_a_loss_is_returned_beside_its_backward(cleared):
    """By hand, without an optimiser: gradients that are there are added to, and may be gone at the end."""
    x = strata.randn(3, 4)
    w, v = (strata.randn(2, 4) for _ in range(2))
    v.copy_(w)

    def step(w, x):
        loss = (x @ w.t()).pow(2).mean()
        loss.backward()
        with strata.no_grad():
            w -= 0.1 * w.grad
        if cleared:
            w.grad = None
        return loss

    compiled = strata.compile(step, fullgraph=True)
    w.requires_grad_(), v.requires_grad_()
    for _ in range(3):
        loss, want = compiled(w, x), step(v, x)
        assert loss.equal(want) and loss.requires_grad and w.equal(v)
        assert (w.grad is None) == cleared and (cleared or w.grad.equal(v.grad))
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


def test_a_result_beside_a_backward_keeps_its_gradient():
    w, v, x = strata.randn(4, requires_grad=True), strata.randn(4, requires_grad=True), strata.randn(4)

    def unrelated(w, v, x):
        (x * w).sum().backward()
        return (v * 3).sum()

    def again(w, v, x):
        loss = (x * w * v).sum()
        loss.backward(retain_graph=True)
        return loss

    def inner(w, v, x):
        y = x.clone().requires_grad_()
        (y * y).sum().backward()
        return (w * y.grad).sum()

    for f in (unrelated, again, inner):
        for _ in range(2):
            found = []
            for g in (f, strata.compile(f)):
                w.grad, v.grad = strata.ones(4), None
                g(w, v, x).backward()
                found.append((w.grad, v.grad))
            assert all(a is b is None or a.equal(b) for a, b in zip(*found, strict=True))
