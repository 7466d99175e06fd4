"""Products of sparse tensors: of matrices, and of elements. What is made on the way is as long as the values that meet."""

from __future__ import annotations

import strata
from strata import Tensor
from strata._sparse_coo import SparseTensor, _flat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["matmul", "mul_held"]


def _sparse(x: Any) -> bool:
    return isinstance(x, SparseTensor)


def matmul(a: Any, b: Any) -> Tensor:
    """A product of which one matrix or both are sparse. Sparse times sparse is sparse, all else dense."""
    if _sparse(a) and _sparse(b):
        return _of_sparse(a, b)
    if _sparse(a):
        return _left(a, b)
    if b.dim() != 2:
        raise NotImplementedError("matmul: a dense tensor times a sparse one of other than 2 dims; call .to_dense()")
    if a.dim() == 1:
        return _left(b.t(), a)
    return _left(b.t(), a.mT).mT


def _check(a: SparseTensor, b: Tensor) -> None:
    if a.dim() != 2 or a.dense_dim() or b.dim() not in (1, 2):
        raise NotImplementedError(f"mm: expected a sparse matrix times a matrix or vector, got {a.dim()} and {b.dim()} dims")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {'x'.join(map(str, b.shape))})"
        )


def _left(a: SparseTensor, b: Tensor) -> Tensor:
    """A sparse matrix times a dense one, or a vector: each value times its row, added where they go."""
    _check(a, b)
    rows, columns = a._indices()
    values = a._values()
    if b.dim() == 2 and values.dtype is b.dtype and b.is_floating_point():
        return strata.ops.strata._bag_sum(b, columns, rows, values, a.shape[0])
    values = values if b.dim() == 1 else values.unsqueeze(1)
    product = values * b.index_select(0, columns)
    return product.new_zeros((a.shape[0], *b.shape[1:])).index_add_(0, rows, product)


def _of_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Each value of a times the values of b in the row that its column names; those of one place are added
    (Gustavson, Two fast algorithms for sparse matrices, 1978)."""
    _check(a, b)
    if b.dim() != 2 or b.dense_dim():
        raise NotImplementedError(f"mm: expected two sparse matrices, got one with {b.dim()} dims, {b.dense_dim()} of them dense")
    by_rows = a.layout is b.layout is strata.sparse_csr
    right = b.to_sparse_coo().coalesce()
    rows, columns = a._indices()
    begins = strata.searchsorted(right._indices()[0], strata.arange(b.shape[0] + 1, device=rows.device))
    counts = begins.diff().index_select(0, columns)
    left = strata.repeat_interleave(counts)
    places = strata.arange(left.shape[0], device=rows.device) - (counts.cumsum(0) - counts).index_select(0, left)
    places += begins.index_select(0, columns).index_select(0, left)
    values = a._values().index_select(0, left) * right._values().index_select(0, places)
    indices = strata.stack([rows.index_select(0, left), right._indices()[1].index_select(0, places)])
    found = SparseTensor.make(indices, values, (a.shape[0], b.shape[1])).coalesce()
    return found.to_sparse_csr() if by_rows else found


def mul_held(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Elementwise, of two tensors of one size: the places that both hold."""
    by_rows = a.layout is strata.sparse_csr
    a, b = a.to_sparse_coo().coalesce(), b.to_sparse_coo().coalesce()
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"mul: expected as many sparse dims in both, got {a.sparse_dim()} and {b.sparse_dim()}")
    if a._indices() is b._indices():
        found = a._like(a._values() * b._values())
    else:
        sizes = a.shape[: a.sparse_dim()]
        mine, theirs = _flat(a._indices(), sizes), _flat(b._indices(), sizes)
        if not theirs.shape[0]:
            mine = mine[:0]
        at = strata.searchsorted(theirs, mine).clamp_(max=max(theirs.shape[0] - 1, 0))
        held = (theirs.index_select(0, at) == mine).nonzero().squeeze(1)
        values = a._values().index_select(0, held) * b._values().index_select(0, at.index_select(0, held))
        found = a._like(values, a._indices().index_select(1, held), a.shape, True)
    return found.to_sparse_csr() if by_rows else found
