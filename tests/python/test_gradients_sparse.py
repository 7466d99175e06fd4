"""Gradients that are sparse, beside dense ones, hooks, functions and transforms; PyTorch 2.13 passes these, too."""

import strata
from strata import nn

F = nn.functional
T = strata.tensor


def dense(grad):
    return (grad.to_dense() if grad.is_sparse else grad).tolist()


def test_sparse_gradients_beside_others():
    def lookup(w):
        return F.embedding(T([1]), w, sparse=True).sum()

    assert dense(strata.func.grad(lookup)(strata.ones(2, 2))) == [[0, 0], [1, 1]]
    w, seen = strata.ones(2, 2, requires_grad=True), []
    assert dense(strata.autograd.grad(lookup(w), w)[0]) == [[0, 0], [1, 1]] and w.grad is None
    w.register_hook(lambda g: g * 10)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    lookup(w).backward()
    assert dense(w.grad) == [[0, 0], [10, 10]] and seen == [1]
    w = strata.ones(2, 2, requires_grad=True)
    w.grad = before = strata.ones(2, 2)
    lookup(w).backward()
    assert w.grad is before and before.tolist() == [[1, 1], [2, 2]]
    module = nn.Embedding(3, 2, sparse=True)
    with strata.no_grad():
        module.weight.fill_(1)
    (module(T([0])) @ module.weight.t()).sum().backward()
    assert dense(module.weight.grad) == [[4, 4], [1, 1], [1, 1]]
    module.weight.grad = None
    for _ in range(2):
        module(T([1])).sum().backward()
    assert module.weight.grad.is_sparse and dense(module.weight.grad) == [[0, 0], [2, 2], [0, 0]]
    (module.weight**2).sum().backward()
    assert dense(module.weight.grad) == [[2, 2], [4, 4], [2, 2]]
    w = strata.ones(3, 2, requires_grad=True)
    F.embedding(T([0]), w * 2, sparse=True).sum().backward()
    assert dense(w.grad) == [[2, 2], [0, 0], [0, 0]]


def test_a_sparse_gradient_of_a_function():
    class Sum(strata.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            return w.sum()

        @staticmethod
        def backward(ctx, grad):
            return strata.sparse_coo_tensor([[1], [0]], [5.0], (3, 2))

    w = strata.ones(3, 2, requires_grad=True)
    Sum.apply(w).backward()
    assert dense(w.grad) == [[0, 0], [5, 0], [0, 0]]
    w.grad = None
    (w * 1).backward(strata.sparse_coo_tensor([[1], [0]], [5.0], (3, 2)))
    assert dense(w.grad) == [[0, 0], [5, 0], [0, 0]]
