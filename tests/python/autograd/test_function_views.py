"""What a Function gives that is its input, or a view: a view whose writes are refused, since its history is the Function's."""

import pytest
import strata
from strata.autograd import Function


class Turned(Function):
    """Gives its input, and turns the gradient's sign."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return -grad


class TurnedView(Turned):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)


class Within(Turned):
    """A view of what forward has made."""

    @staticmethod
    def forward(ctx, x):
        return (x * 2).view(2, 3)


KINDS = pytest.mark.parametrize("kind", [Turned, TurnedView, Within])


def leaf():
    return strata.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)


@KINDS
def test_they_are_views(kind):
    x = leaf()
    y = kind.apply(x)
    assert y._is_view() and y._base is not None and (kind is Within or (y._base is x and y.data_ptr() == x.data_ptr()))
    y.sum().backward()
    assert x.grad.tolist() == [[-1.0] * 3] * 2


@KINDS
@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[0], lambda y: y.t()])
def test_writes_are_refused(kind, part):
    y = part(kind.apply(leaf() * 1))
    for write in (lambda: y.mul_(2), lambda: y.zero_(), lambda: y.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            write()
    y.clone().mul_(2).sum().backward()
    with strata.no_grad():
        y.mul_(1)
    y.detach().mul_(1)


@pytest.mark.parametrize("kind", [Turned, TurnedView])
def test_after_a_write_to_the_base_they_are_no_longer_used(kind):
    x = leaf() * 1
    y = kind.apply(x)
    x.mul_(3)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        (y * 2).sum().backward()


def test_several_results():
    class Halves(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0], x[1] * 1

        @staticmethod
        def backward(ctx, a, b):
            return strata.stack([a * 3, b * 5])

    x = leaf()
    a, b = Halves.apply(x)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        a.add_(1)
    b.mul_(2)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [[3.0] * 3, [10.0] * 3]


@pytest.mark.parametrize("kind", [Turned, TurnedView])
def test_an_optimizer_may_write_the_leaf(kind):
    x = leaf()
    y = kind.apply(x)
    loss = (y * y).sum()
    loss.backward()
    with strata.no_grad():
        x.add_(x.grad)
    assert x.tolist() == [[0.0, -1.0, -2.0], [-3.0, -4.0, -5.0]] and y.requires_grad


@KINDS
def test_compiled_they_are_the_same(kind):
    def f(x):
        y = kind.apply(x * 1)
        return y, y.view(3, 2), y * 2

    compiled = strata.compile(f, fullgraph=True)
    for g in (f, compiled):
        x = leaf()
        a, b, c = g(x)
        (a.sum() * 2 + b.sum() * 3 + c.sum() * 5).backward()
        assert x.grad.tolist() == [[-15.0] * 3] * 2
        assert compiled(x)[1].tolist() == f(x)[1].tolist()


@pytest.mark.parametrize("kind", [Turned, TurnedView])
def test_compiled_writes_are_refused(kind):
    def f(x):
        y = kind.apply(x)
        y.mul_(2)
        return y

    compiled = strata.compile(lambda x: kind.apply(x))
    for g in (f, strata.compile(f), lambda x: compiled(x).mul_(2)):
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            g(leaf() * 1)
