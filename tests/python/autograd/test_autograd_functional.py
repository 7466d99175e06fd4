"""jacobian, hessian and the products, against known derivatives."""

import pytest
import strata
from strata.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from strata.testing import assert_close

F64 = strata.float64


@pytest.fixture
def x():
    return strata.tensor([0.5, -1.0, 2.0], dtype=F64)


@pytest.fixture
def y():
    return strata.tensor([[1.0, 2.0, 3.0], [0.5, -0.5, 1.5]], dtype=F64)


def test_jacobian_of_one(x):
    assert_close(jacobian(lambda a: a.sin(), x), strata.diag(x.cos()))


def test_jacobian_nests_like_the_arguments(x, y):
    table = jacobian(lambda a, b: (b.matmul(a), a.sum()), (x, y))
    assert [[tuple(block.shape) for block in row] for row in table] == [[(2, 3), (2, 2, 3)], [(3,), (2, 3)]]
    assert_close(table[0][0], y)
    assert_close(table[1][1], strata.zeros(2, 3, dtype=F64))


def test_jacobian_of_nothing(x):
    assert jacobian(lambda a: a[:0], x).shape == (0, 3)


def test_hessian(x, y):
    assert_close(hessian(lambda a: (a**3).sum(), x), strata.diag(6 * x))
    table = hessian(lambda a, b: b.matmul(a).sum(), (x, y))
    assert_close(table[0][0], strata.zeros(3, 3, dtype=F64))
    assert table[0][1].shape == (3, 2, 3) and table[1][0].shape == (2, 3, 3)


def test_products_agree_with_the_matrices(x):
    def f(a):
        return strata.stack([a[0] * a[1], a[2].exp(), a.sum(), a[1] ** 3])

    j = jacobian(f, x)
    v, w = strata.tensor([1.0, -2.0, 0.5, 3.0], dtype=F64), strata.tensor([0.3, 0.2, -1.0], dtype=F64)
    out, product = vjp(f, x, v)
    assert_close(out, f(x))
    assert_close(product, v.matmul(j))
    assert_close(jvp(f, x, w)[1], j.matmul(w))

    def g(a):
        return (a.exp() * a.sum()).sum()

    h = hessian(g, x)
    assert_close(vhp(g, x, w)[1], w.matmul(h))
    assert_close(hvp(g, x, w)[1], h.matmul(w))


def test_create_graph(x):
    x.requires_grad_()
    j = jacobian(lambda a: a**3, x, create_graph=True)
    j.sum().backward()
    assert_close(x.grad, (6 * x).detach())
    assert not jacobian(lambda a: a**3, x).requires_grad


def test_a_linear_function_has_a_zero_hessian(x):
    assert_close(hvp(lambda a: (a * 2).sum(), x, x)[1], strata.zeros_like(x))


def test_strict(x):
    with pytest.raises(RuntimeError, match="independent of input 1"):
        vjp(lambda a, b: a * 2, (x, x), x, strict=True)
    with pytest.raises(RuntimeError, match="output 0 of the function does not depend"):
        jacobian(lambda a: strata.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        hessian(lambda a: (a * 2).sum(), x, strict=True)


def test_refusals(x):
    with pytest.raises(RuntimeError, match="single element"):
        vjp(lambda a: a, x)
    with pytest.raises(RuntimeError, match=r"shape \(3,\), got \(2,\)"):
        vjp(lambda a: a, x, x[:2])
    with pytest.raises(RuntimeError, match="single element"):
        hessian(lambda a: a, x)
    with pytest.raises(TypeError, match="must be a Tensor, got float"):
        jacobian(lambda a: a, 1.0)
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(lambda a: a, x, strategy="forward-mode")
