"""What hooks may change, and what is retained after a write; holds in PyTorch 2.13, too."""

import pytest
import strata

T = strata.tensor


def test_the_gradient_of_what_a_tensor_holds_now_is_retained():
    x = T([1.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0] and x.grad.tolist() == [6.0]
    base = x * strata.ones(4)
    view = base[1:3]
    base.retain_grad()
    view.retain_grad()
    view.mul_(5)
    (base * T([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert base.grad.tolist() == [1.0, 2.0, 3.0, 4.0]
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0]


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("wrong", [lambda g: g.double(), lambda g: g.sum(), lambda g: strata.ones(5, 2), lambda g: g[:1]])
def test_a_hook_gives_what_is_like_the_gradient(leaf, wrong):
    x = T([1.0, 2.0], requires_grad=True)
    y = x if leaf else x * 1
    handle = y.register_hook(wrong)
    with pytest.raises(RuntimeError, match="changed the (type|size) of value"):
        (y * 2).sum().backward()
    handle.remove()
    y.register_hook(lambda g: g * 10)
    x.grad = None
    (y * 2).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_hooks_of_nodes_are_checked():
    x = T([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0].sum(),))
    with pytest.raises(RuntimeError, match="changed the size of value"):
        y.sum().backward()
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: tuple(g if g is None else g.double() for g in inputs))
    with pytest.raises(RuntimeError, match="changed the type of value"):
        y.sum().backward()
