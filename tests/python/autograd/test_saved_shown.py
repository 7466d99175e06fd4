"""What nodes show of the tensors that they saved, and hooks of one of them."""

import pytest
import strata as torch


def test_saved_tensors_by_name():
    x = torch.randn(5, requires_grad=True)
    squared = x.pow(2)
    assert squared.grad_fn._saved_self is x
    result = x.exp()
    shown = result.grad_fn._saved_result
    assert torch.equal(shown, result) and shown is not result and shown.grad_fn is result.grad_fn
    product = x * result
    assert product.grad_fn._saved_self is x and product.grad_fn._saved_other is result
    with pytest.raises(AttributeError, match="_saved_nothing"):
        product.grad_fn._saved_nothing
    squared.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        squared.grad_fn._saved_self


def test_lists_are_tuples():
    x = torch.randn(4, requires_grad=True)
    indices = torch.tensor([0, 2])
    (shown,) = x[indices].grad_fn._saved_indices
    assert torch.equal(shown, indices)
    (raw,) = x[indices].grad_fn._raw_saved_indices
    assert type(raw) is torch._C.SavedTensor


def test_hooks_of_one_saved_tensor():
    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)
    product, seen = x * y, []
    product.grad_fn._raw_saved_self.register_hooks(lambda t: seen.append(t) or t.tolist(), lambda v: torch.tensor(v) * 10)
    assert seen[0] is x
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        product.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="expected two callables"):
        product.grad_fn._raw_saved_other.register_hooks(1, 2)
    product.sum().backward()
    assert y.grad.tolist() == [20.0, 30.0] and x.grad.tolist() == [5.0, 7.0]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        product.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)


def test_a_hook_that_packs_an_output():
    x = torch.tensor([0.5], requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.clone(), lambda t: t * 2)
    y.backward()
    assert torch.equal(x.grad, y.detach() * 2)
