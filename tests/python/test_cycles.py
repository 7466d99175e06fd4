"""Cycles of Python that lead to an object which C++ still shows: the collector breaks them, and the object keeps what it has."""

from __future__ import annotations

import gc

import strata


def leave_in_a_cycle(value):
    cycle = [value]
    cycle.append(cycle)


class Marked(strata.Tensor):
    pass


def test_attributes_of_a_gradient():
    x = strata.ones(3, requires_grad=True)
    x.grad = strata.ones(3).as_subclass(Marked)
    x.grad.mark = 7
    leave_in_a_cycle(x.grad)
    gc.collect()
    assert type(x.grad) is Marked and x.grad.mark == 7


def test_hooks_of_what_a_graph_holds():
    x = strata.ones(2, requires_grad=True)
    made = x * 2
    made.register_hook(lambda g: g * 10)
    total = made.sum()
    leave_in_a_cycle(made)
    del made
    gc.collect()
    total.backward()
    assert x.grad.tolist() == [20, 20]


def test_what_a_function_keeps_for_backward():
    class Tripled(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3
            leave_in_a_cycle(ctx)
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor

    x = strata.ones(2, requires_grad=True)
    y = Tripled.apply(x)
    gc.collect()
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_metadata_of_a_node():
    y = strata.ones(2, requires_grad=True) * 2
    y.grad_fn.metadata["mark"] = 1
    leave_in_a_cycle(y.grad_fn)
    gc.collect()
    assert y.grad_fn.metadata == {"mark": 1}


def test_a_compiled_step_of_sparse_gradients():
    table = strata.nn.Embedding(5, 3, sparse=True)
    optimizer, rows = strata.optim.SparseAdam(table.parameters(), lr=0.1), strata.tensor([0, 1, 0])

    @strata.compile
    def step(rows):
        optimizer.zero_grad()
        loss = (table(rows) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        losses = [step(rows) for _ in range(4)]
    finally:
        gc.set_threshold(*before)
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
