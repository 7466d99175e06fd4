"""Functions with a jvp of their own inside of forward_ad."""

import pytest
import strata as torch
import strata.autograd.forward_ad as fwd


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = torch.exp(x)
        return ctx.result

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.result


class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, y):
        ctx.scale = scale
        return x * scale, y.clone()

    @staticmethod
    def jvp(ctx, dx, _, dy):
        return None if dx is None else dx * ctx.scale, dy


def test_its_tangent_goes_on():
    x, t = torch.randn(4, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64)
    with fwd.dual_level():
        out = Exp.apply(fwd.make_dual(x, t))
        assert torch.allclose(fwd.unpack_dual(out).tangent, x.exp() * t)
        assert torch.allclose(fwd.unpack_dual(out.sin() * 2).tangent, 2 * x.exp().cos() * x.exp() * t)
    assert torch.allclose(Exp.apply(x), x.exp())


def test_arguments_without_a_tangent_give_none():
    x, y, t = torch.ones(2), torch.ones(2), torch.tensor([1.0, 2.0])
    with fwd.dual_level():
        a, b = Pair.apply(x, 3.0, fwd.make_dual(y, t))
        assert fwd.unpack_dual(b).tangent.tolist() == [1.0, 2.0] and fwd.unpack_dual(a).tangent is None
        assert not Pair.apply(x, 3.0, y)[0].requires_grad


def test_forward_mode_is_checked():
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Exp.apply, (x,), check_forward_ad=True, check_backward_ad=False)

    class Wrong(Exp):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2

    with pytest.raises(RuntimeError, match="Jacobian"):
        torch.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False)

    class Many(Exp):
        @staticmethod
        def jvp(ctx, tangent):
            return tangent, tangent

    with fwd.dual_level(), pytest.raises(RuntimeError, match="Many.jvp returned 2 tangents, forward 1 results"):
        Many.apply(fwd.make_dual(x, x))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        result = a * b
        ctx.save_for_forward(a, b, result)
        ctx.save_for_backward(b)
        return result, "a product"

    @staticmethod
    def backward(ctx, grad, _):
        (b,) = ctx.saved_tensors
        return grad * b, None

    @staticmethod
    def jvp(ctx, da, db):
        a, b, result = ctx.saved_tensors
        assert torch.equal(result, a * b)
        return da * b, None


class MoreProduct(Product):
    pass


@pytest.mark.parametrize("function", [Product, MoreProduct])
def test_what_forward_saves_for_it_and_results_that_are_no_tensors(function):
    x, y = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0])
    with fwd.dual_level():
        result, text = function.apply(fwd.make_dual(x, torch.ones(2)), y)
        assert fwd.unpack_dual(result).tangent.tolist() == [5.0, 7.0] and text == "a product"
    result, text = function.apply(x, y)
    result.sum().backward()
    assert x.grad.tolist() == [5.0, 7.0] and text == "a product"

    class Strange(Product):
        @staticmethod
        def jvp(ctx, da, db):
            return da, da

    with fwd.dual_level(), pytest.raises(RuntimeError, match="Strange.jvp returned a tangent of a str"):
        Strange.apply(fwd.make_dual(x, torch.ones(2)), y)
