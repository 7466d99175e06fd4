"""Hooks of tensors and nodes, and hooks that pack what backward keeps."""

import gc
import weakref

import pytest
import strata as torch
from strata.autograd.graph import (
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*size):
    return torch.ones(*size).requires_grad_()


def test_tensor_hook_sees_and_replaces():
    x = leaf(2)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [20.0, 20.0]


def test_hook_on_a_leaf_and_removal():
    x = leaf(2)
    handle = x.register_hook(lambda g: g * 3)
    (x * 1).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    handle.remove()
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with x.register_hook(lambda g: g * 100):
        pass
    (x * 1).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_removal_after_the_tensor_is_gone():
    x = leaf(2)
    y = x * 2
    handle = y.register_hook(lambda g: g * 100)
    z = (y * 1).sum()
    del y
    gc.collect()
    handle.remove()
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_hook_errors():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)
    x = leaf(1)
    with pytest.raises(TypeError):
        x.register_hook(3)
    (x * 2).register_hook(lambda g: "no")
    y = x * 2
    y.register_hook(lambda g: "no")
    with pytest.raises(TypeError):
        y.backward()
    z = x * 2

    def fail(grad):
        raise KeyError("from the hook")

    z.register_hook(fail)
    with pytest.raises(KeyError, match="from the hook"):
        z.backward()


def test_retain_grad_and_order():
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and x.grad.tolist() == [10.0, 10.0] and y.retains_grad


def test_post_accumulate_hook():
    x = leaf(2)
    seen = []

    def after(parameter):
        seen.append((parameter is x, parameter.grad.tolist()))
        parameter.grad = None

    handle = x.register_post_accumulate_grad_hook(after)
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [(True, [1.0, 1.0])] and x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(after)


def test_node_hooks():
    x = leaf(2)
    y = (x * 2).sum()
    calls = []
    node = y.grad_fn
    node.register_prehook(lambda grads: (grads[0] * 2,))
    node.register_hook(lambda inputs, outputs: calls.append((inputs[0].tolist(), outputs[0].tolist())))
    handle = node.register_hook(lambda inputs, outputs: (inputs[0] * 3,))
    y.backward(retain_graph=True)
    assert calls == [([2.0, 2.0], 2.0)] and x.grad.tolist() == [12.0, 12.0]
    handle.remove()
    x.grad = None
    y.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_node_hook_result_is_checked():
    y = (leaf(2) * 2).sum()
    y.grad_fn.register_hook(lambda inputs, outputs: (None, None, None))
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.backward()


def test_multi_grad_hook_all():
    a, b, c = leaf(1), leaf(1), leaf(1)
    calls = []
    handle = register_multi_grad_hook((a, b, c), lambda grads: calls.append([g is not None for g in grads]))
    (a * b).sum().backward()
    assert calls == [[True, True, False]]
    (a * b * c).sum().backward(inputs=[a])
    assert calls[1:] == [[True, False, False]]
    handle.remove()
    (a * b * c).sum().backward()
    assert len(calls) == 2


def test_multi_grad_hook_any():
    a, b = leaf(1), leaf(1)
    calls = []
    register_multi_grad_hook((a, b), calls.append, mode="any")
    (a * b).sum().backward()
    (a * b).sum().backward()
    assert len(calls) == 2
    with pytest.raises(ValueError, match="mode"):
        register_multi_grad_hook((a,), calls.append, mode="some")


def test_hooks_do_not_keep_tensors_alive():
    x = leaf(2)
    y = x * 2
    handle = y.register_hook(lambda g: None)
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert seen() is None
    handle.remove()


# ---- what backward keeps


def test_pack_and_unpack():
    x = leaf(3)
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return len(packed), t * 2

    with saved_tensors_hooks(pack, lambda p: p[1] / 2):
        y = (x * 3).exp()
    y.sum().backward()
    assert len(packed) >= 1
    assert torch.allclose(x.grad, 3 * (3 * torch.ones(3)).exp())


def test_innermost_hooks_count():
    x = leaf(1)
    calls = []

    def keep(name):
        return saved_tensors_hooks(lambda t: calls.append(name) or t, lambda t: t)

    with keep("outer"):
        with keep("inner"):
            x * x
        inner = list(calls)
        x * x
    assert set(inner) == {"inner"} and calls[-1] == "outer"


def test_unpack_must_give_a_tensor():
    x = leaf(1)
    with saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x * x
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        y.backward()


def test_save_on_cpu():
    x = leaf(3)
    with save_on_cpu(pin_memory=True):
        y = (x.exp() * x).sum()
    y.backward()
    assert torch.allclose(x.grad, 2 * torch.ones(3).exp())


def test_disabled_hooks():
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
        with disable_saved_tensors_hooks("nor here"):
            pass
        with pytest.raises(RuntimeError, match="not here"):
            with saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_error_in_pack_reaches_the_user():
    x = leaf(1)

    def fail(t):
        raise KeyError("pack")

    with saved_tensors_hooks(fail, lambda t: t), pytest.raises(KeyError, match="pack"):
        x * x
    assert (x * x).requires_grad


def test_a_post_accumulate_hook_gives_nothing_or_its_tensor():
    x = torch.zeros(3, requires_grad=True)
    handle = x.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    x.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [-0.5, -1.0, -1.5]
    handle.remove()
    x.backward(torch.ones(3))
    assert x.tolist() == [-0.5, -1.0, -1.5]
    for hook, error, text in ((lambda p: p * 2, RuntimeError, "should return None"), (lambda p: 5, TypeError, "returned 'int'")):
        handle = x.register_post_accumulate_grad_hook(hook)
        with pytest.raises(error, match=text):
            x.backward(torch.ones(3))
        handle.remove()
