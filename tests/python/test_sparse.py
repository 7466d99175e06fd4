"""Sparse tensors beside dense ones: the same numbers and gradients, and refusals. What they print is in printed/sparse.py."""

import math

import pytest
import strata
from strata import sparse
from strata.testing import assert_close


def random(*size, dtype=strata.float64):
    dense = strata.randn(*size, dtype=dtype)
    return dense * (strata.rand(*size) < 0.4)


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
def test_products_and_sums_are_those_of_dense_matrices(form):
    strata.manual_seed(0)
    a, b, d = random(7, 5), random(5, 6), strata.randn(5, 3, dtype=strata.float64)
    x = getattr(a, form)()
    assert_close(x @ d, a @ d)
    assert_close(d.t() @ x.t(), d.t() @ a.t())
    assert_close((x @ b.to_sparse()).to_dense(), a @ b)
    assert_close((x + x * 2).to_dense(), a * 3)
    assert_close(x.to_dense(), a)
    assert_close(sparse.sum(x), a.sum())
    assert_close(strata.relu(x).to_dense(), a.relu())


def test_duplicates_add():
    strata.manual_seed(0)
    indices = strata.randint(0, 4, (3, 50))
    values = strata.randn(50, 2, dtype=strata.float64)
    x = strata.sparse_coo_tensor(indices, values, (4, 4, 4, 2))
    dense = strata.zeros(4, 4, 4, 2, dtype=strata.float64).index_put(tuple(indices), values, accumulate=True)
    assert_close(x.to_dense(), dense)
    assert_close(x.coalesce().to_dense(), dense)
    places = x.coalesce().indices()
    assert bool(((places[0] * 16 + places[1] * 4 + places[2]).diff() > 0).all())
    assert_close(sparse.sum(x, (0, 3)).to_dense(), dense.sum((0, 3)))


def test_gradients():
    strata.manual_seed(0)
    indices = strata.tensor([[0, 1, 1, 2, 0], [2, 0, 2, 1, 2]])
    values = strata.randn(5, dtype=strata.float64, requires_grad=True)
    dense = strata.randn(3, 2, dtype=strata.float64, requires_grad=True)

    def made(values):
        return strata.sparse_coo_tensor(indices, values, (3, 3))

    for function in (
        lambda v, d: sparse.mm(made(v), d),
        lambda v, d: made(v).coalesce().values() * 2,
        lambda v, d: sparse.softmax(made(v), 1).to_dense() @ d,
        lambda v, d: sparse.sum(made(v) * made(v), 0).to_dense(),
        lambda v, d: (made(v) + made(v).t()).to_dense() @ d,
        lambda v, d: sparse.sampled_addmm(made(v).coalesce(), d, d.t()).values(),
    ):
        assert strata.autograd.gradcheck(function, (values, dense))


def test_a_graph_network_learns():
    strata.manual_seed(0)
    edges = strata.tensor([[0, 1, 2, 3, 0, 4], [1, 2, 0, 4, 3, 3]])
    adjacency = strata.sparse_coo_tensor(edges, strata.ones(6), (5, 5)).coalesce()
    weight = strata.nn.Linear(5, 2)
    weight.register_buffer("adjacency", adjacency)
    optimizer = strata.optim.Adam(weight.parameters(), lr=0.1)
    labels = strata.tensor([0, 0, 0, 1, 1])
    for _ in range(60):
        optimizer.zero_grad()
        loss = strata.nn.functional.cross_entropy(strata.spmm(weight.adjacency, weight(strata.eye(5))), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1 and weight.state_dict()["adjacency"].is_sparse


def test_refusals():
    x = strata.eye(3).to_sparse()
    for function in (strata.exp, strata.cumsum, lambda x: x + 1, lambda x: x[0:2], lambda x: strata.matmul(x, strata.ones(2, 3, 3))):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError), match="dense|sparse|cumsum"):
            function(x)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        sparse.mm(x, strata.ones(2, 2))
    with pytest.raises(RuntimeError, match="found negative index -1 for dim 0"):
        strata.sparse_coo_tensor([[-1]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        strata.sparse_coo_tensor([[2]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="crow_indices"):
        strata.sparse_csr_tensor([0, 2], [0], [1.0], (1, 1))
    with pytest.raises(RuntimeError, match="same nnz"):
        strata.sparse_coo_tensor([[0, 1]], [1.0], (2,))


def test_nothing_reads_the_carrier():
    """What would compute with the object as if it were dense finds NaN, never zeros that look right."""
    x = strata.eye(3).to_sparse()
    with strata._C.DisableTorchFunctionSubclass():
        assert all(math.isnan(v) for v in strata.Tensor.flatten(x).as_subclass(strata.Tensor).tolist())


def test_the_dims_of_a_sum_are_checked():
    x = strata.eye(2).to_sparse()

    class Endless:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return 1

    for dim, error in ((Endless(), TypeError), (2, IndexError), ((0, -2), RuntimeError)):
        with pytest.raises(error, match="(?i)dim"):
            strata.sparse.sum(x, dim)
    with pytest.raises(TypeError, match="expected a sparse tensor"):
        strata.sparse.sum(strata.ones(2), 0)


@pytest.mark.parametrize("kind", ["to_sparse", "to_sparse_csr"])
def test_what_would_read_numbers_of_a_sparse_tensor_says_so(kind):
    sparse, dense = getattr(strata.tensor([[0.0, 1.0], [3.0, 0.0]]), kind)(), strata.ones(2, 2)
    for read in (
        sparse.tolist, lambda: strata.nn.Buffer(sparse), lambda: sparse.as_subclass(strata.Tensor), lambda: dense.set_(sparse),
        lambda: dense.__setitem__(slice(None), sparse), lambda: strata.Tensor(sparse), lambda: setattr(dense, "data", sparse),
        lambda: strata.tensor(sparse), lambda: sparse.numpy(),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="dense"):
            read()
    assert dense.tolist() == [[1, 1], [1, 1]]
    leaf = strata.ones(2, 2, requires_grad=True)
    (leaf * 1).backward(sparse)
    assert leaf.grad.tolist() == [[0, 1], [3, 0]]


def test_tensors_of_no_dims():
    x = strata.tensor(2.0).to_sparse()
    assert (x.shape, x.sparse_dim(), x.dense_dim(), x._nnz()) == ((), 0, 0, 1) and x.indices().shape == (0, 1)
    assert x.to_dense().equal(strata.tensor(2.0)) and x.item() == 2 and (x + x).item() == 4 and (x * x).item() == 4
    assert strata.tensor(0).to_sparse()._nnz() == 0 and strata.tensor(0).to_sparse().item() == 0
    thrice = strata.sparse_coo_tensor(strata.empty(0, 3, dtype=strata.int64), strata.tensor([2.0, 3.0, 4.0]), ())
    assert thrice.coalesce()._nnz() == 1 and thrice.item() == 9
    assert strata.sparse_coo_tensor(size=()).to_dense().equal(strata.tensor(0.0))
    assert strata.sparse_coo_tensor(size=(2, 3)).shape == (2, 3)
    leaf = strata.tensor(2.0, requires_grad=True)
    (leaf.to_sparse().to_dense() * 3).backward()
    assert leaf.grad.equal(strata.tensor(3.0))
