"""An optimiser that a program wrote after PyTorch's, with the helpers that it takes from there."""

from __future__ import annotations

import strata
from strata.optim.optimizer import (
    Optimizer,
    _default_to_fused_or_foreach,
    _get_value,
    _stack_if_compiling,
    _use_grad_for_differentiable,
    _view_as_real,
)


class Mine(Optimizer):
    def __init__(self, params, lr=0.1, differentiable=False):
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @_use_grad_for_differentiable
    def step(self, closure=None):
        for group in self.param_groups:
            params, grads, steps = [], [], []
            for p in group["params"]:
                self.state[p].setdefault("step", strata.tensor(0.0))
                self.state[p]["step"] += 1
                params.append(p)
                grads.append(p.grad)
                steps.append(self.state[p]["step"])
            assert _default_to_fused_or_foreach(params, group["differentiable"]) == (False, False)
            _view_as_real(params, grads)
            for p, g, s in zip(params, grads, steps, strict=True):
                p.add_(g, alpha=-group["lr"] / _get_value(s) ** 0.5)
            return _stack_if_compiling(steps)


def test_steps_record_nothing():
    p, z = (strata.ones(2, dtype=dtype, requires_grad=True) for dtype in (strata.float32, strata.complex64))
    for t in (p, z):
        t.grad = strata.ones_like(t)
    steps = Mine([p, z]).step()
    assert p.grad_fn is None and (p - 0.9).abs().max() < 1e-6 and (z - (0.9 + 0j)).abs().max() < 1e-6
    assert [float(s) for s in steps] == [1, 1]


def test_differentiable_steps_record():
    p, rate = strata.ones(2, requires_grad=True), strata.tensor(2.0, requires_grad=True)
    own = p.clone()
    own.grad = rate * strata.ones(2)
    Mine([own], differentiable=True).step()
    (found,) = strata.autograd.grad(own.sum(), rate)
    assert abs(float(found) + 0.2) < 1e-6


def test_momentum_of_sparse_gradients():
    tables = [strata.nn.Embedding(4, 2, sparse=sparse) for sparse in (True, False)]
    tables[1].load_state_dict(tables[0].state_dict())
    for table in tables:
        optimizer = strata.optim.SGD(table.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        for k in range(3):
            optimizer.zero_grad()
            (table(strata.tensor([0, 1, k])) ** 2).sum().backward()
            optimizer.step()
    assert strata.equal(tables[0].weight, tables[1].weight)
