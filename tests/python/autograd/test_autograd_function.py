"""autograd.Function."""

import gc
import traceback
import weakref

import pytest
import strata as torch
from strata.autograd import Function
from strata.autograd.function import once_differentiable


def leaf(*size):
    return torch.ones(*size).requires_grad_()


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


class Scale(Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        ctx.shape = output.shape

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


def test_forward_and_backward():
    x = leaf(3)
    y = Exp.apply(x)
    assert type(y.grad_fn).__name__ == "ExpBackward" and y.grad_fn.name() == "ExpBackward"
    y.sum().backward()
    assert torch.allclose(x.grad, x.detach().exp())
    assert not Exp.apply(torch.ones(1)).requires_grad
    with torch.no_grad():
        assert not Exp.apply(x).requires_grad


def test_setup_context_form():
    x = leaf(3)
    y = Scale.apply(x, 4.0)
    y.sum().backward()
    assert x.grad.tolist() == [4.0] * 3 and y.grad_fn.factor == 4.0 and y.grad_fn.shape == (3,)


def test_double_backward():
    x = torch.tensor(0.5, requires_grad=True)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.allclose(y.detach(), x.detach().exp())


def test_ctx_is_the_node():
    x = leaf(2)
    y = Exp.apply(x)
    ctx = y.grad_fn
    assert ctx is y.grad_fn and ctx.saved_tensors[0].tolist() == y.tolist()
    assert ctx.needs_input_grad == (True,) and isinstance(ctx, torch.autograd.graph.Node)
    assert ctx.next_functions[0][0].variable is x
    ctx.note = "kept"
    del ctx
    gc.collect()
    assert y.grad_fn.note == "kept"


def test_ctx_is_freed_with_the_graph():
    class Marker:
        pass

    marker = Marker()
    seen = weakref.ref(marker)

    class Hold(Function):
        @staticmethod
        def forward(ctx, x, held):
            ctx.held = held
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    y = Hold.apply(leaf(1), marker)
    del marker
    gc.collect()
    assert seen() is not None
    del y
    gc.collect()
    assert seen() is None


def test_a_held_node_keeps_its_graph():
    x = leaf(1)
    node = Exp.apply(Exp.apply(x)).grad_fn
    gc.collect()
    assert node.next_functions[0][0].name() == "ExpBackward"
    assert node.next_functions[0][0].next_functions[0][0].variable is x


def test_needs_input_grad_and_several_inputs():
    class Mul(Function):
        @staticmethod
        def forward(ctx, a, n, b):
            ctx.save_for_backward(a, None, b)
            return a * n * b

        @staticmethod
        def backward(ctx, grad):
            assert ctx.needs_input_grad == (True, False, False)
            a, nothing, b = ctx.saved_tensors
            assert nothing is None
            return grad * 3 * b, None, None

    x = leaf(2)
    Mul.apply(x, 3, torch.ones(2)).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_several_outputs_and_materialized_grads():
    class Split(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, "text", x * 3

        @staticmethod
        def backward(ctx, a, text, b):
            assert text is None
            seen.append(None if b is None else b.tolist())
            return a * 2, None

    for materialize, expected in ((True, [0.0, 0.0]), (False, None)):
        seen = []
        x = leaf(2)
        first, text, _ = Split.apply(x, materialize)
        assert text == "text"
        first.sum().backward()
        assert seen == [expected] and x.grad.tolist() == [2.0, 2.0]


def test_non_differentiable_outputs():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            flags = x > 0
            plain = x * 2
            ctx.mark_non_differentiable(plain)
            return x * 1, flags, plain

        @staticmethod
        def backward(ctx, grad, *others):
            return grad

    y, flags, plain = Sort.apply(leaf(2))
    assert y.requires_grad and not flags.requires_grad and not plain.requires_grad
    y.sum().backward()


def test_dirty_inputs():
    class Add(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(2)
    y = x * 1
    z = Add.apply(y)
    assert z is y and y.grad_fn.name() == "AddBackward" and y._version == 2
    z.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Add.apply(x)


def test_dirty_must_be_returned():
    class Forget(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="not returned as output"):
        Forget.apply(leaf(1) * 1)


def test_returned_inputs_and_views():
    class Same(Function):
        @staticmethod
        def forward(ctx, x, view):
            return x.view(1, -1) if view else x

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2).reshape(2), None

    x = leaf(2)
    for view in (False, True):
        y = Same.apply(x, view)
        assert y is not x and y.grad_fn.name() == "SameBackward" and x.grad_fn is None
        y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with torch.no_grad():
        y = Same.apply(x, False)
    assert y is not x and not y.requires_grad


def test_saved_tensors_are_checked():
    x = leaf(2)
    y = Exp.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    y = Exp.apply(x)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_wrong_results_of_backward():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, n, result):
            ctx.result = result
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return ctx.result

    x = leaf(2)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 3, got 2\)"):
        Wrong.apply(x, 1, (torch.ones(1), None)).sum().backward()
    with pytest.raises(RuntimeError, match="different than None at position 2"):
        Wrong.apply(x, 1, (torch.ones(1), torch.ones(1), None)).sum().backward()
    with pytest.raises((TypeError, RuntimeError), match=r"or None \(got float\)|but got float|float"):
        Wrong.apply(x, 1, (1.0, None, None)).sum().backward()
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - got"):
        Wrong.apply(x, 1, (torch.ones(3), None, None)).sum().backward()
    # Superfluous Nones are dropped.
    Wrong.apply(x, 1, (torch.ones(2), None, None, None)).sum().backward()


def test_missing_methods():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(1)

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="backward or vjp"):
        NoBackward.apply(leaf(1)).backward()


def test_vjp_is_backward():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(1)
    Twice.apply(x).backward()
    assert x.grad.tolist() == [2.0]


def test_errors_keep_their_traceback():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("deep inside")

    with pytest.raises(KeyError, match="deep inside") as error:
        Fails.apply(leaf(1)).backward()
    text = "".join(traceback.format_exception(error.type, error.value, error.tb))
    assert 'raise KeyError("deep inside")' in text

    class FailsAtOnce(Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("in forward")

    with pytest.raises(ValueError, match="in forward"):
        FailsAtOnce.apply(leaf(1))
    assert torch.is_grad_enabled()


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not torch.is_grad_enabled()
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(2)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    weight = leaf(2)
    (g,) = torch.autograd.grad(Once.apply(x), x, weight, create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="differentiate twice.*once_differentiable"):
        g.sum().backward()


def test_grad_mode_inside():
    modes = []

    class Modes(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(torch.is_grad_enabled())
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            modes.append(torch.is_grad_enabled())
            return grad * 1

    x = leaf(1)
    Modes.apply(x).backward()
    torch.autograd.grad(Modes.apply(x), x, create_graph=True)
    assert modes == [False, False, False, True]


def test_backward_inside_backward():
    class Reentrant(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (g,) = torch.autograd.grad(x * x, x, grad)
            return g

    x = leaf(3)
    (Reentrant.apply(x) * 2).sum().backward()
    assert x.grad.tolist() == [4.0] * 3


def test_saved_hooks_apply_to_custom_functions():
    packed = []
    x = leaf(2)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t.clone(), lambda t: t):
        y = Exp.apply(x)
    y.sum().backward()
    assert packed == [1] and torch.allclose(x.grad, x.detach().exp())


def test_not_to_be_instantiated():
    with pytest.raises((RuntimeError, TypeError)):
        Exp()(leaf(1))
    with pytest.raises(TypeError):
        Exp.apply(y=leaf(1))


def test_gradcheck_of_a_function():
    x = torch.tensor([0.1, 0.7, -0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Exp.apply, (x,)) and torch.autograd.gradgradcheck(Exp.apply, (x,))


def test_long_chain_is_freed_without_recursion():
    x = leaf(1)
    y = x
    for _ in range(20_000):
        y = Scale.apply(y, 1.0)
    held = weakref.ref(x)
    del x, y
    gc.collect()
    assert held() is None
