"""Sparse functions that move or broadcast elements, against the dense ones, over random shapes with dense dims and doubled places."""

from __future__ import annotations

import random

import pytest
import strata as torch


def drawn(r: random.Random, shape: list[int], sparse_dim: int):
    count = r.randrange(9)
    places = [[r.randrange(n) for _ in range(count)] for n in shape[:sparse_dim]]
    values = torch.randn(count, *shape[sparse_dim:])
    return torch.sparse_coo_tensor(torch.tensor(places, dtype=torch.int64).reshape(sparse_dim, count), values, shape)


@pytest.mark.parametrize("seed", range(60))
def test_like_dense(seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    sparse_dim = r.choice((1, 2, 3))
    shape = [r.choice((1, 2, 3, 4)) for _ in range(sparse_dim + r.choice((0, 0, 1)))]
    x, y, dim = drawn(r, shape, sparse_dim), drawn(r, shape, sparse_dim), r.randrange(-len(shape), len(shape))
    dense, other, n = x.to_dense(), y.to_dense(), shape[dim]
    index = torch.tensor([r.randrange(-n, n) for _ in range(r.randrange(5))], dtype=torch.int64)
    start = r.randrange(n)
    part = torch.randn([m if r.random() < 0.6 else 1 for m in shape][r.randrange(len(shape)) :])
    larger = torch.randn(2, *[m if m > 1 else 3 for m in shape])
    for ours, expected in (
        (torch.index_select(x, dim, index), dense.index_select(dim, index % n)),
        (x.select(dim, n - 1), dense.select(dim, n - 1)),
        (x.narrow_copy(dim, start, n - start), dense.narrow(dim, start, n - start)),
        (x.unsqueeze(dim), dense.unsqueeze(dim)),
        (torch.cat([x, y, x], dim), torch.cat([dense, other, dense], dim)),
        (torch.stack([x, y], dim), torch.stack([dense, other], dim)),
        (x * part, dense * part),
        (part * x, dense * part),
        (x * larger, dense * larger),
        (x.sum(dim, keepdim=True), dense.sum(dim, keepdim=True)),
        (x - y, dense - other),
        (x.clone().add_(y), dense + other),
        (x.clone().mul_(2), dense * 2),
        (torch.randn(0, *shape).sum(0).add_(x, alpha=3), dense * 3),
        (dense.clone().sub_(y), dense - other),
        (x.tan(), dense.tan()),
        (x.isnan(), dense.isnan()),
        (x.coalesce().half(), dense.half()),
    ):
        found = ours.to_dense() if ours.layout is torch.sparse_coo else ours
        torch.testing.assert_close(found, expected)


def test_products():
    r = random.Random(1)
    a, b = drawn(r, [4, 3, 5], 3), torch.randn(4, 5, 2)
    torch.testing.assert_close(torch.bmm(a, b), torch.bmm(a.to_dense(), b))
    m, d = drawn(r, [4, 3], 2), torch.randn(3, 2)
    for found in (torch.hspmm(m, d), torch.smm(m, d), torch.sparse.smm(m, d)):
        torch.testing.assert_close(found.to_dense(), m.to_dense() @ d)
    c = drawn(r, [4, 2], 2)
    torch.testing.assert_close(torch.sspaddmm(c, m, d, beta=2, alpha=3).to_dense(), 2 * c.to_dense() + 3 * m.to_dense() @ d)


def test_gradients():
    v, w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([[2.0], [3.0]], requires_grad=True)
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [1, 0, 1]]), v, (2, 2))
    torch.stack([s * w, s]).index_select(0, torch.tensor([0, 0])).to_dense().sum().backward()
    assert v.grad.tolist() == [4, 6, 6] and w.grad.tolist() == [[2], [10]]


def test_refused():
    s = torch.eye(3).to_sparse()
    with pytest.raises(IndexError, match="out of range"):
        s.index_select(0, torch.tensor([3]))
    with pytest.raises(IndexError, match="out of range"):
        s.select(1, -4)
    with pytest.raises(IndexError, match="too many indices"):
        s[0, 0, 0]
    with pytest.raises(RuntimeError, match="broadcast|size"):
        s * torch.ones(4)
    with pytest.raises(RuntimeError, match="another layout"):
        s.add_(torch.eye(3))
    with pytest.raises(RuntimeError, match="copy_"):
        torch.eye(3).copy_(s)
    with pytest.raises(NotImplementedError, match="all elements"):
        s.any(0)
    with pytest.raises(RuntimeError, match="one size but along"):
        torch.cat([s, torch.eye(4).to_sparse()])
    leaf = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (2,), requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.mul_(2)
