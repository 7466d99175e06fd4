"""Views that were made, or whose base was written or turned, while gradients were off: the same file passes under PyTorch with
`import torch as strata`."""

from __future__ import annotations

import pytest
import strata


def leaf():
    return strata.arange(4.0).reshape(2, 2).clone().requires_grad_()


def unrecorded(p):
    with strata.no_grad():
        return p.view(4)


def test_it_requires_a_gradient_and_has_no_node():
    p = leaf()
    v = unrecorded(p)
    assert v.requires_grad and v.grad_fn is None and v.is_leaf and not v.detach().requires_grad
    assert v.requires_grad_(False).requires_grad
    w = v[1:] * 2
    assert not unrecorded(strata.zeros(4)).requires_grad
    assert w.requires_grad and w.grad_fn.next_functions[0][0] is not None


def test_what_is_made_of_it_leads_nowhere():
    p = leaf()
    v = unrecorded(p)
    made = v * 2
    assert made.requires_grad and made.grad_fn.next_functions[0] == (None, 0)
    made.sum().backward()
    assert p.grad is None and v.grad is None
    found = strata.autograd.grad((v * p.view(4)).sum(), [v, p], allow_unused=True)
    assert found[0] is None and found[1].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="does not require grad"):
        v.sum(0, keepdim=True).detach().backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        unrecorded(strata.ones(2, 2, requires_grad=True))[0].detach().backward()


def test_a_view_of_what_comes_to_require_a_gradient_does_so_too():
    base = strata.arange(4.0)
    v = base[:2]
    base.requires_grad_()
    assert v.requires_grad and v.grad_fn is None and (v * 2).requires_grad


def test_it_becomes_a_leaf_of_its_own_where_that_is_said():
    p = leaf()
    v = unrecorded(p).requires_grad_()
    (v * v).sum().backward()
    assert v.grad.tolist() == [0, 2, 4, 6] and p.grad is None


def test_writes_that_gradients_follow_are_refused():
    v = unrecorded(leaf())
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        v.mul_(2)
    with strata.no_grad():
        v.mul_(2)
    assert v.tolist() == [0, 2, 4, 6]


def test_its_history_is_asked_for_after_a_write():
    p = leaf()
    v = unrecorded(p)
    with strata.no_grad():
        p.add_(1)
    assert v.requires_grad
    with strata.no_grad():
        assert (v * 2).sum().item() == 20 and v.requires_grad and not v.clone().requires_grad
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base"):
        (v * 2).sum().backward()
    q = leaf() * 1
    v = unrecorded(q)
    q.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base"):
        v * 2


def test_a_leaf_that_was_turned_gets_gradients_where_its_views_look_now():
    p = leaf()
    row = p[0]
    with strata.no_grad():
        p.swapaxes_(0, 1)
    (row * strata.tensor([1.0, 2.0])).sum().backward()
    assert p.tolist() == [[0, 2], [1, 3]] and p.grad.tolist() == [[1, 0], [2, 0]]


def test_writes_without_gradients_leave_views_as_they_were():
    p = leaf()
    row = p[0]
    with strata.no_grad():
        p.add_(1)
    (row * row).sum().backward()
    assert p.grad.tolist() == [[2, 4], [0, 0]]


def test_a_function_of_ones_own_takes_it_where_gradients_are_off():
    class Twice(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    p = leaf()
    v = unrecorded(p)
    with strata.no_grad():
        p.add_(1)
        assert Twice.apply(v).tolist() == [2, 4, 6, 8]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base"):
        Twice.apply(v)
