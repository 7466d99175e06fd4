"""Transforms inside of transforms, in inference mode, over trees and Functions with a jvp; holds in PyTorch 2.13, too."""

import pytest
import strata
from strata import func
from strata.testing import assert_close


def cube(x):
    return x**3


X, W, ONE = strata.tensor([2.0]), strata.tensor([3.0]), strata.tensor([1.0])


def test_what_is_pulled_or_pushed_learns():
    assert_close(func.grad(lambda v: func.vjp(cube, X)[1](v)[0].sum())(W), strata.tensor([12.0]))
    assert_close(func.grad(lambda v: func.jvp(cube, (X,), (v,))[1].sum())(W), strata.tensor([12.0]))
    assert_close(func.grad(lambda v: (v * func.jvp(cube, (X,), (v,))[1]).sum())(W), strata.tensor([72.0]))
    assert_close(func.jvp(lambda v: func.jvp(cube, (X,), (v,))[1], (W,), (ONE,))[1], strata.tensor([12.0]))
    assert_close(func.grad(lambda x: func.jvp(cube, (x,), (W,))[1].sum())(X), strata.tensor([36.0]))
    learns = W.clone().requires_grad_()
    (pulled,) = func.vjp(cube, X)[1](learns)
    assert pulled.requires_grad
    pulled.sum().backward()
    assert_close(learns.grad, strata.tensor([12.0]))
    value, pull = func.vjp(cube, X)
    assert not value.requires_grad and not pull(W)[0].requires_grad
    with strata.no_grad():
        assert not func.vjp(cube, X)[1](learns)[0].requires_grad


def test_inference_mode_is_no_zero():
    with strata.inference_mode():
        made = X + 0
        for x in (X, made):
            assert_close(func.grad(lambda v: (v * v).sum())(x), strata.tensor([4.0]))
            assert_close(func.jacrev(lambda v: v * v)(x), strata.tensor([[4.0]]))
            assert_close(func.vjp(lambda v: v * v, x)[1](strata.tensor([2.0]))[0], strata.tensor([8.0]))
            assert_close(func.jvp(lambda v: v * v, (x,), (ONE,))[1], strata.tensor([4.0]))


def test_jacobians_of_trees():
    both = func.jacrev(lambda v: (v * 2, v.sum()))(X)
    assert_close(both[0], strata.tensor([[2.0]]))
    assert_close(both[1], strata.tensor([1.0]))
    assert_close(func.jacfwd(lambda v: {"a": v * 2})(X)["a"], strata.tensor([[2.0]]))
    found = func.hessian(lambda d: (d["a"] ** 2 * d["b"]).sum())({"a": X, "b": W})
    assert_close(found["a"]["a"], strata.tensor([[6.0]]))
    assert_close(found["a"]["b"], strata.tensor([[4.0]]))
    assert_close(found["b"]["b"], strata.tensor([[0.0]]))
    mixed = func.hessian(lambda a, b: (a * b).sum(), argnums=(0, 1))(X, W)
    assert_close(mixed[0][1], strata.tensor([[1.0]]))
    assert_close(mixed[1][1], strata.tensor([[0.0]]))
    assert func.jacfwd(lambda x: x.double())(X).dtype == strata.float64
    assert func.jacrev(lambda x: x.double())(X).dtype == strata.float32
    assert func.jacrev(lambda x: x * 2)(strata.ones(0)).shape == (0, 0)


class Once(strata.autograd.Function):
    @staticmethod
    def forward(x, scale):
        return x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    @strata.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * ctx.scale, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * ctx.scale * 10


class Both(strata.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return dx * y + x * dy


def test_a_jvp_of_ones_own():
    value, product = func.jvp(lambda x: Once.apply(x, 2.0), (X,), (ONE,))
    assert_close(value, strata.tensor([4.0]))
    assert_close(product, strata.tensor([20.0]))
    assert_close(func.jvp(lambda x: Once.apply(x.sin(), 2.0).exp(), (X,), (ONE,))[1], 20 * X.cos() * (2 * X.sin()).exp())
    assert_close(func.jvp(lambda x: Both.apply(x, W), (X,), (ONE,))[1], W)
    assert_close(func.jvp(Both.apply, (X, W), (ONE, ONE))[1], X + W)
    x = X.clone().requires_grad_()
    assert_close(strata.autograd.grad(Once.apply(x, 2.0).sum(), x)[0], strata.tensor([2.0]))
    from strata.autograd import forward_ad

    with forward_ad.dual_level():
        assert_close(forward_ad.unpack_dual(Both.apply(forward_ad.make_dual(X, ONE), W)).tangent, W)


def test_a_batch_of_none():
    assert func.vmap(lambda v: v * strata.ones(2))(strata.ones(0, 2)).shape == (0, 2)
    first, second = func.vmap(lambda v: (v.sum(), v[None]), out_dims=(0, 1))(strata.ones(0, 3))
    assert first.shape == (0,) and second.shape == (1, 0, 3)


def test_names_that_a_module_does_not_have():
    module = strata.nn.Linear(1, 1)
    given = {name: p.detach() for name, p in module.named_parameters()}
    assert_close(func.functional_call(module, {**given, "extra": ONE}, (ONE,)), module(ONE).detach())
    with pytest.raises(RuntimeError):
        func.functional_call(module, {**given, "extra": ONE}, (ONE,), strict=True)
    assert not hasattr(module, "extra")


def test_what_dual_tensors_are_made_of_learns():
    from strata.autograd import forward_ad

    p, q = strata.tensor([3.0], requires_grad=True), strata.tensor([5.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, p)
        value, tangent = forward_ad.unpack_dual(dual * dual)
        assert not value.requires_grad and tangent.requires_grad
        tangent.sum().backward()
        assert_close(p.grad, strata.tensor([4.0]))
        sum(forward_ad.unpack_dual(forward_ad.make_dual(X, ONE) * q)).sum().backward()
        assert_close(q.grad, strata.tensor([3.0]))
        q.grad = None
        sum(forward_ad.unpack_dual(forward_ad.make_dual(q, ONE) ** 3)).sum().backward()
        assert_close(q.grad, strata.tensor([105.0]))
        value, tangent = forward_ad.unpack_dual(forward_ad.make_dual(X, ONE) ** 2)
        assert not value.requires_grad and not tangent.requires_grad


def test_vmap_refuses_writes_to_what_elements_share():
    """Each element would do them again: what is captured, named or held by a module."""
    x, held = strata.ones(2, 4, 3), strata.zeros(3)
    for f in (lambda t: held.add_(t[0]), strata.nn.BatchNorm1d(3), strata.nn.BatchNorm1d(3).forward):
        with pytest.raises(RuntimeError, match="written in-place"):
            strata.func.vmap(f)(x)
    assert strata.func.vmap(strata.nn.BatchNorm1d(3).eval())(x).shape == (2, 4, 3)
    assert strata.func.vmap(lambda t: t.clone().add_(held))(x).shape == (2, 4, 3)
