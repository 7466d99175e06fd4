"""In-place writes through views: what is refused is refused before anything is written, and gradients of gradients pass them."""

import pytest
import strata


def refused_before(write, x, view):
    before, needs = x.detach().clone(), x.requires_grad
    with pytest.raises(RuntimeError, match="no_grad mode"):
        write(view)
    assert x.detach().equal(before)
    assert x.requires_grad == needs and x.is_leaf


WRITES = {
    "mul_": lambda v, w: v.mul_(w),
    "copy_": lambda v, w: v.copy_(w),
    "add": lambda v, w: v.__iadd__(w),
    "item": lambda v, w: v.__setitem__(0, w[0]),
    "addcmul_": lambda v, w: v.addcmul_(w, w),
    "index_add_": lambda v, w: v.index_add_(0, strata.tensor([0]), w[:1]),
    "masked_fill_": lambda v, w: v.masked_fill_(strata.tensor([True, False]), w[0]),
    "lerp_": lambda v, w: v.lerp_(w, 0.5),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_view_made_without_gradients(name):
    x = strata.ones(4)
    with strata.no_grad():
        v = x[:2]
    w = strata.full((2,), 3.0, requires_grad=True)
    refused_before(lambda v: WRITES[name](v, w), x, v)
    WRITES[name](v, w.detach())
    assert not x.requires_grad


def test_a_leaf_that_is_a_view():
    base = strata.zeros(4)
    x = base[:2].detach().requires_grad_()
    with strata.no_grad():
        v = x[:1]
    refused_before(lambda v: v.add_(strata.ones(1, requires_grad=True)), x, v)


# Operators whose gradient reads what they wrote.
RESULTS = "tanh_ sigmoid_ exp_ exp2_ expm1_ sqrt_ rsqrt_ reciprocal_ tan_ erfinv_ sin_ relu_ elu_".split()


def write(t, name):
    return strata.nn.functional.elu_(t) if name == "elu_" else getattr(t, name)()


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("shape", [(2, 1), (1, 2), None])
def test_gradients_of_gradients_through_a_view(name, shape):
    def f(a, inplace):
        v = a * 0.5
        part = v if shape is None else v.view(shape)
        if inplace:
            write(part, name)
        else:
            v = write(part.clone(), name).view(2)
        return (v * v * strata.tensor([1.0, 3.0])).sum()

    second = []
    for inplace in (True, False):
        a = strata.tensor([0.3, 0.7], dtype=strata.float64, requires_grad=True)
        (g,) = strata.autograd.grad(f(a, inplace), a, create_graph=True)
        (h,) = strata.autograd.grad(g.sum(), a)
        second.append((g.detach(), h))
    assert second[0][0].allclose(second[1][0])
    assert second[0][1].allclose(second[1][1])


def test_a_part_of_a_tensor():
    a = strata.tensor([[0.2, 0.4], [0.6, 0.8]], dtype=strata.float64, requires_grad=True)

    def f(a):
        v = a * 1
        v.view(-1)[1:3].view(1, 2).sigmoid_()
        return v.pow(2)

    assert strata.autograd.gradcheck(f, a)
    assert strata.autograd.gradgradcheck(f, a)


def test_complex_views():
    a = strata.tensor([0.3 + 0.2j, 0.5 - 0.1j], dtype=strata.complex128, requires_grad=True)

    def f(a):
        v = a * 1
        strata.view_as_real(v).tanh_()
        return v

    assert strata.autograd.gradcheck(f, a)
    assert strata.autograd.gradgradcheck(f, a)
