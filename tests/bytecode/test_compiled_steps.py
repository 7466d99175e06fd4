"""Compiled steps that break: their gradients are eager's."""

from __future__ import annotations

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
