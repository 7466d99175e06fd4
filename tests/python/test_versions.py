"""Writes between a forward and its backward are counted, on parameters, buffers and `.data` too: the same file passes under PyTorch
with `import torch as strata`."""

from __future__ import annotations

import pytest
import strata
from strata import nn
from strata.nn import functional as F


def refused(loss):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_parameter_that_is_written_before_its_backward():
    w = nn.Parameter(strata.ones(3))
    loss = (w * w).sum()
    with strata.no_grad():
        w.add_(1)
    assert w._version == 1
    refused(loss)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("foreach", [True, False])
def test_a_step_between_a_forward_and_its_backward(optimizer, foreach):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    step = getattr(strata.optim, optimizer)(net.parameters(), lr=0.1, foreach=foreach)
    x = strata.ones(2, 3)
    net(x).sum().backward()
    late = net(x).sum()
    before = net[2].weight._version
    step.step()
    assert net[2].weight._version > before
    refused(late)


def test_buffers_and_what_is_loaded():
    net = nn.Linear(2, 2)
    net.scale = nn.Buffer(strata.ones(2))
    x = strata.ones(1, 2, requires_grad=True)
    loss = (net(x) * net.scale).sum()
    net.scale.mul_(3)
    refused(loss)
    loss = net(x).sum()
    net.load_state_dict(net.state_dict())
    refused(loss)


def test_a_parameter_shares_the_count_of_what_it_was_made_from():
    x = strata.ones(3)
    p = nn.Parameter(x)
    x.add_(1)
    assert (x._version, p._version) == (1, 1)
    with strata.no_grad():
        p.mul_(2)
    assert (x._version, p._version) == (2, 2)


def test_data_counts_for_itself_and_its_views():
    b = strata.ones(3)
    v = b[:2]
    d = v.data
    d.add_(1)
    part = d[:1]
    part.add_(1)
    assert (b._version, v._version, d._version, part._version) == (0, 0, 2, 2)
    b.add_(1)
    assert (b._version, v._version, d._version) == (1, 1, 2)
    assert b.detach()._version == 1
    w = strata.ones(2, requires_grad=True)
    loss = (w * d).sum()
    d.add_(1)
    refused(loss)
    loss = (w * v).sum()
    v.data.add_(1)  # nobody is told of it
    loss.backward()


def test_given_other_memory_a_tensor_keeps_its_count():
    p, y = nn.Parameter(strata.ones(3)), strata.ones(3)
    with strata.no_grad():
        p.add_(1)
    y.add_(1)
    y.add_(1)
    p.data = y
    y.add_(1)
    assert (p._version, y._version) == (1, 3)
    with strata.no_grad():
        p.add_(1)
    assert (p._version, y._version) == (2, 3)
    net = nn.Linear(2, 2)
    with strata.no_grad():
        net.weight.add_(1)
    before = net.weight._version
    net.double()
    assert before >= 1 and net.weight._version == before


def test_set_counts_and_refuses_leaves():
    x = strata.ones(2)
    x.set_(strata.ones(3))
    assert x._version == 1
    leaf = strata.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.set_(strata.ones(3))
    with strata.no_grad():
        leaf.set_(strata.ones(3))
    assert leaf.shape == (3,)


def test_python_loops_over_elements_refuse_gradients():
    x = strata.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="apply_"):
        x.apply_(lambda v: v + 1)
    with pytest.raises(RuntimeError, match="map_"):
        x.map_(strata.ones(2), lambda a, b: a)
    assert x.detach().apply_(lambda v: v + 1).tolist() == [2, 2]


def test_a_leaf_may_be_stepped_while_its_backward_goes_on():
    w = nn.Parameter(strata.ones(3))

    def step(p):
        p.data.sub_(p.grad)

    w.register_post_accumulate_grad_hook(step)
    (w * 2).sum().backward()
    assert w.tolist() == [-1, -1, -1]


def test_what_no_gradient_reads_may_be_written():
    net, x = nn.Linear(2, 2), strata.ones(1, 2)  # x needs no gradient, which alone would read the weight
    loss = net(x).sum()
    with strata.no_grad():
        net.weight.add_(1)
    loss.backward()
    a, b = strata.ones(2, requires_grad=True), strata.ones(2)
    loss = (a.exp() * b).sum()
    a.grad = None
    c = a.exp()
    loss = (c * b).sum()
    c.detach().add_(0)
    refused(loss)  # exp reads its result
    b = strata.ones(2)
    d = a * 2
    loss = (d * b).sum()
    d.add_(1)  # which the gradient by b alone would read
    loss.backward()
    assert a.grad.tolist() == [2, 2]


def test_what_no_gradient_reads_is_not_kept():
    x, frozen, w = strata.ones(4, 3, requires_grad=True), strata.ones(2, 3), strata.ones(2, 3, requires_grad=True)
    made = F.linear(x, frozen, strata.ones(2)).grad_fn
    assert made._saved_mat1 is None and made._saved_mat2 is not None  # a frozen layer keeps no activations
    made = F.linear(x.detach(), w, strata.ones(2)).grad_fn
    assert made._saved_mat1 is not None and made._saved_mat2 is None
    made = (x * 2.5 * strata.ones(3)).grad_fn
    assert made._saved_self is None and made._saved_other is not None
    (x * frozen[0]).exp().sum().backward()
    assert x.grad.tolist() == (frozen[0] * (x * frozen[0]).exp()).expand(4, 3).tolist()
    c = strata.ones(2, 2, requires_grad=True)
    d = c * 1
    d.mul_(strata.ones(2, 2))
    assert d.grad_fn._saved_self is None
    d.sum().backward()
    assert c.grad.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_that_takes_other_sizes_unrecorded_is_still_a_view(leaf):
    a = strata.tensor([[2.0], [0.5]], requires_grad=True)
    b = a if leaf else a * 1
    v = b.view_as(b)
    with strata.no_grad():
        v.transpose_(0, 1)
    assert v.shape == (1, 2) and v.requires_grad
    (v * strata.tensor([[1.0, 3.0]])).sum().backward()
    assert a.grad.tolist() == [[1.0], [3.0]]
