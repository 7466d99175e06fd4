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
    assert torch.equal(seen[0], x) and not seen[0].requires_grad
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        product.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="expected two callables"):
        product.grad_fn._raw_saved_other.register_hooks(1, 2)
    with pytest.raises(TypeError, match="register_hooks expected 2 arguments, got 1"):
        product.grad_fn._raw_saved_other.register_hooks(lambda t: t)
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


def test_the_names_are_listed():
    x = torch.randn(3, requires_grad=True)
    assert {"_saved_self", "_raw_saved_self", "name"} <= set(dir(x.sin().grad_fn))
    assert {"_saved_indices", "_raw_saved_indices"} <= set(dir(x[torch.tensor([0, 2])].grad_fn))
    assert not [name for name in dir(x.clone().grad_fn) if "saved" in name]


def packs_of_a_block(hooks):
    def register(pack, x):
        with hooks(pack, lambda t: t):
            return (x * 2).sin().exp()

    return register


def packs_of_one(pack, x):
    y = (x * 2).sin()
    y.grad_fn._raw_saved_self.register_hooks(pack, lambda t: t)
    z = y.exp()
    z.grad_fn._raw_saved_result.register_hooks(pack, lambda t: t)
    return z


@pytest.mark.parametrize("register", [packs_of_a_block(torch.autograd.graph.saved_tensors_hooks), packs_of_one])
def test_hooks_get_values_without_history(register):
    """What keeps them keeps no graph, of which they may be a part."""
    x, kept = torch.tensor([0.5], requires_grad=True), []
    z = register(lambda t: kept.append(t) or t, x)
    assert len(kept) >= 2 and not any(t.requires_grad or t.grad_fn is not None for t in kept)
    z.backward()
    assert torch.allclose(x.grad, (x * 2).sin().exp() * (x * 2).cos() * 2)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        register(lambda t: t.add_(1), x)
