"""Products of two sparse matrices, and of their elements."""

from __future__ import annotations

import pytest
import strata


def test_products_of_sparse_matrices_are_as_long_as_what_meets():
    n = 10**6
    places = strata.arange(n)
    turned = strata.sparse_coo_tensor(strata.stack([places, places * 7 % n]), places.float() % 5, (n, n))
    square = turned @ turned
    assert square._nnz() == (turned * turned)._nnz() == n
    assert (square._indices()[1] == places * 49 % n).all()
    assert (square._values() == places.float() % 5 * (places * 7 % n % 5)).all()
    assert (turned * strata.sparse_coo_tensor([[3], [21]], [2.0], (n, n))).coalesce().values().tolist() == [6.0]


@pytest.mark.parametrize("seed", range(6))
def test_products_of_sparse_matrices_beside_dense(seed):
    strata.manual_seed(seed)
    a, b = ((strata.rand(s) < 0.3) * strata.randn(s) for s in ((5 + seed, 7), (7, 9 - seed)))
    held = strata.rand(7, 9 - seed) < 0.5
    for left, right in ((a.to_sparse(), b.to_sparse()), (a.to_sparse_csr(), b.to_sparse_csr())):
        product = left @ right
        strata.testing.assert_close(product.to_dense(), a @ b)
        assert product.layout is left.layout
        assert product._nnz() == ((a != 0).double() @ (b != 0).double() > 0).sum()
        other = (b * held + held).to_sparse() if left.layout is strata.sparse_coo else (b * held + held).to_sparse_csr()
        both = right * other
        strata.testing.assert_close(both.to_dense(), b * (b * held + held))
        assert both.layout is right.layout and both._nnz() == ((b != 0) & held & (other.to_dense() != 0)).sum()


def test_gradients_of_products_of_sparse_matrices():
    strata.manual_seed(3)
    a, b = ((strata.rand(6, 6) < 0.4) * strata.randn(6, 6, dtype=strata.float64) for _ in range(2))
    for function in (strata.matmul, strata.mul):
        sparse = [t.to_sparse().requires_grad_() for t in (a, b)]
        dense = [t.clone().requires_grad_() for t in (a, b)]
        (function(*sparse).to_dense() ** 3).sum().backward()
        (function(*dense) ** 3).sum().backward()
        for s, d in zip(sparse, dense, strict=True):
            strata.testing.assert_close(s.grad.to_dense(), d.grad * (d != 0))
