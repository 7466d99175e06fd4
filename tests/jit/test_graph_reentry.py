"""`./run test graph-reentry`: a compiled function that is called again before its backward, from threads, on arguments that share
memory, and whose results are kept, gives eager's bits."""

from __future__ import annotations

import threading

import graph_models
import pytest
import strata
from graph_models import same


def in_four_threads(work):
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def trig(x):
    return x.sin() ** 2 + x.cos() ** 2


def test_results_are_the_callers():
    cf = strata.graph(trig, strata.randn(50)).compile()
    xs = [strata.randn(50) for _ in range(100)]
    held = [cf(x) for x in xs]
    assert all(same(y, trig(x)) for x, y in zip(xs, held, strict=True))


def test_two_forwards_then_two_backwards_in_both_orders():
    w = strata.randn(30, requires_grad=True)

    def f(x):
        return (x * w).tanh() * w

    a, b = strata.randn(30), strata.randn(30)
    cf = strata.graph(f, a).compile()
    for order in ((0, 1), (1, 0)):
        ends, wants = [cf(a), cf(b)], [f(a), f(b)]
        for k in order:
            (got,), (want,) = strata.autograd.grad(ends[k].sum(), w), strata.autograd.grad(wants[k].sum(), w)
            assert same(got, want)


def test_threads_share_one_compiled_function():
    x = strata.randn(20, 70, requires_grad=True)

    def f(x):
        return x.softmax(-1).log() * x

    cf, wrong = strata.graph(f, x).compile(), []

    def work(seed):
        y = strata.randn(20, 70, generator=strata.Generator().manual_seed(seed)).requires_grad_()
        for _ in range(20):
            a, b = cf(y), f(y)
            (ga,), (gb,) = strata.autograd.grad(a.sum(), y), strata.autograd.grad(b.sum(), y)
            if not (same(a, b) and same(ga, gb)):
                wrong.append(seed)

    in_four_threads(work)
    assert not wrong

@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("made", [graph_models.mlp, graph_models.gpt])
def test_models_called_twice_before_their_backwards(made, order):
    model, batch = made()
    batches = [batch(), batch()]
    cf = strata.graph(model, batches[0][0]).compile()
    found = []
    for f in (cf, model):
        model.zero_grad()
        strata.manual_seed(9)
        ends = [f(x) for x, _ in batches]
        for k in order:
            ends[k].square().mean().backward()
        found.append([*(e.detach() for e in ends), *(p.grad.clone() for p in model.parameters())])
    assert all(same(a, b) for a, b in zip(*found, strict=True))


def test_arguments_that_share_memory():
    def f(x, y):
        x.mul_(2)
        return x + y, (y * x).sum()

    cf = strata.graph(f, strata.ones(6), strata.ones(6)).compile()
    for take in (lambda m: (m[:6], m[6:]), lambda m: (m[:6], m[:6]), lambda m: (m[:6], m[3:9]), lambda m: (m[2:8], m[:6])):
        a, b = strata.arange(12.0), strata.arange(12.0)
        got, want = cf(*take(a)), f(*take(b))
        assert all(same(p, q) for p, q in zip(got, want, strict=True)) and same(a, b)


def test_a_compiled_step_from_threads_of_their_own():
    wrong = []

    def work(seed):
        found = []
        for compiled in (False, True):
            generator = strata.Generator().manual_seed(seed)
            w = strata.randn(40, 8, generator=generator).requires_grad_()
            optimiser = strata.optim.SGD([w], lr=0.1)

            def step(x, w=w, optimiser=optimiser):
                optimiser.zero_grad()
                loss = (x @ w).square().mean()
                loss.backward()
                optimiser.step()
                return loss

            xs = [strata.randn(16, 40, generator=generator) for _ in range(10)]
            if compiled:
                kept = w.detach().clone()
                step = strata.graph(step, xs[0]).compile()
                with strata.no_grad():
                    w.copy_(kept)
            found.append([*(step(x).detach().clone() for x in xs), w.detach()])
        if not all(same(a, b) for a, b in zip(*found, strict=True)):
            wrong.append(seed)

    in_four_threads(work)
    assert not wrong


def test_a_capture_needs_the_memory_of_an_eager_run():
    """Not of all that it ever made: what nobody has any more is let go."""
    x = strata.zeros(1 << 18)  # 1 MiB

    def f(x):
        for _ in range(64):
            x = x + 1
        return x

    strata._C._reset_peak_memory()
    start = strata._C._memory_stats()["live_bytes"]
    graph = strata.graph(f, x)
    assert strata._C._memory_stats()["peak_bytes"] - start < 8 << 20
    assert same(graph.compile()(x), f(x))
