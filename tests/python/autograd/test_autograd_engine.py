"""Backward, grad, the graph's nodes, and gradient modes."""

import gc
import threading
import weakref

import pytest
import strata as torch
from strata.autograd.graph import get_gradient_edge, increment_version


def leaf(*size):
    return torch.ones(*size).requires_grad_()


def test_snippet_of_two_sums():
    a, b = leaf(5, 5), leaf(5, 5)
    c = (a + b).sum()
    assert repr(c) == "tensor(50., grad_fn=<SumBackward0>)"
    assert repr(c.grad_fn).startswith("<SumBackward0 object at 0x")
    ((add, nr),) = c.grad_fn.next_functions
    assert type(add).__name__ == "AddBackward0" and add.name() == "AddBackward0" and nr == 0
    assert [n.name() for n, _ in add.next_functions] == ["AccumulateGrad"] * 2
    assert add.next_functions[0][0].variable is a
    c.backward()
    assert a.grad.tolist() == b.grad.tolist() == [[1.0] * 5] * 5


def test_nodes_keep_their_identity_and_metadata():
    x = leaf(2)
    y = x * 2
    node = y.grad_fn
    assert y.grad_fn is node
    node.metadata["note"] = [1]
    del node
    gc.collect()
    assert y.grad_fn.metadata == {"note": [1]}
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert (x * 1).grad_fn.next_functions[0][0] is (x * 3).grad_fn.next_functions[0][0]
    with pytest.raises(TypeError):
        torch.autograd.graph.Node()


def test_edges_without_gradient_are_none():
    x = leaf(2)
    y = x * torch.ones(2)
    assert y.grad_fn.next_functions[1] == (None, 0)
    assert isinstance(y.grad_fn._sequence_nr(), int)


def test_node_dies_with_its_tensor():
    x = leaf(2)
    y = x * 2
    y.grad_fn.metadata["alive"] = marker = type("Marker", (), {})()
    seen = weakref.ref(marker)
    del marker
    assert seen() is not None
    del y
    gc.collect()
    assert seen() is None


def test_accumulates_and_retains():
    x = leaf(3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0] * 3
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_weights_and_several_roots():
    x = leaf(3)
    y, z = x * 2, x * 3
    torch.autograd.backward([y, z], [torch.ones(3), 10 * torch.ones(3)])
    assert x.grad.tolist() == [32.0] * 3


def test_error_texts():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(torch.ones(2))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        torch.autograd.backward(x.sum(), grad_tensors=[1.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        torch.autograd.backward([x.sum()], [None, None])


def test_inputs_limit_what_is_filled():
    x, y = leaf(2), leaf(2)
    h = x * y
    h.sum().backward(inputs=[x, h])
    assert x.grad.tolist() == [1.0, 1.0] and y.grad is None and h.grad.tolist() == [1.0, 1.0]


def test_grad_returns_and_does_not_fill():
    x, y = leaf(2), leaf(2)
    z = (x * x * y).sum()
    gx, gy = torch.autograd.grad(z, (x, y))
    assert gx.tolist() == [2.0, 2.0] and gy.tolist() == [1.0, 1.0] and x.grad is None


def test_unused_inputs():
    x, y = leaf(2), leaf(2)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(x.sum(), y)
    assert torch.autograd.grad(x.sum(), (x, y), allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), (x, y), materialize_grads=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="materialize_grads"):
        torch.autograd.grad(x.sum(), y, allow_unused=False, materialize_grads=True)


def test_higher_orders():
    x = torch.tensor(2.0, requires_grad=True)
    y, expected = x**4, [32.0, 48.0, 48.0, 24.0]
    for value in expected:
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(value, rel=1e-5)


def test_gradient_edges_stand_for_tensors():
    x = leaf(3)
    y = x * 2
    edge = get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    z = (y * 5).sum()
    assert torch.autograd.grad(z, edge)[0].tolist() == [5.0] * 3
    torch.autograd.backward([edge], [torch.ones(3)])
    assert x.grad.tolist() == [2.0] * 3


def test_batched_grads_need_a_batch():
    x = leaf(2)
    with pytest.raises(ValueError, match="is_grads_batched"):
        torch.autograd.grad(x.sum(), x, is_grads_batched=True)


def test_write_between_forward_and_backward_names_both_lines():
    x = leaf(3)
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        z.backward()
    text = str(error.value)
    assert text.count("test_autograd_engine.py") == 2 and "add_" in text


def test_increment_version():
    x = torch.ones(2)
    before = x._version
    increment_version(x)
    increment_version([x])
    assert x._version == before + 2


def test_leaf_trap():
    x = leaf(2)
    y = x.clone()
    (y * 2).sum().backward()
    assert y.is_leaf is False and x.grad is not None


def test_deep_graph_needs_no_stack():
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_backward_on_several_threads():
    x = leaf(1000)
    errors = []

    def work():
        try:
            for _ in range(50):
                (g,) = torch.autograd.grad((x * x).sum(), x)
                assert g.sum().item() == 2000.0
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_queue_callback():
    x = leaf(1)
    done = []
    y = x * 2
    engine = torch.autograd.Variable._execution_engine
    y.register_hook(lambda g: engine.queue_callback(lambda: done.append(x.grad is not None)))
    y.backward()
    assert done == [True]
    with pytest.raises(RuntimeError, match="during backward pass"):
        engine.queue_callback(print)


# ---- modes


def test_grad_modes():
    x = leaf(2)
    with torch.no_grad():
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def double(t):
        return t * 2

    assert not double(x).requires_grad


def test_inference_mode():
    x = leaf(2)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        with torch.inference_mode(False):
            z = x * 2
            assert z.requires_grad and not z.is_inference()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    assert (x + y).requires_grad
    assert y.view(1, 2).is_inference() and not y.clone().is_inference()


def test_inference_mode_counts_writes_to_normal_tensors():
    x = torch.ones(2)
    before = x._version
    with torch.inference_mode():
        x.add_(1)
        assert not x.view(2).is_inference()
    assert x._version == before + 1


def test_a_view_of_a_leaf_that_is_a_view_is_not_written():
    a = torch.ones(12).reshape(3, 4).requires_grad_()
    for write in (lambda: a[0].fill_(5), lambda: a.fill_diagonal_(1), lambda: a.t().mul_(2), lambda: a.add_(1), lambda: a[0].unsqueeze_(0),
                  lambda: a.unsqueeze(0).transpose_(1, 2)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write()
    a.sum().backward()
    assert a.is_leaf and a.grad.tolist() == [[1, 1, 1, 1]] * 3
