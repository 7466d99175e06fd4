"""Sparse matrices by rows: where each row's values begin, their columns, and they themselves."""

from __future__ import annotations

import strata
from strata import Tensor
from strata._sparse_coo import SparseTensor, _as_values, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SparseCsrTensor", "from_coo", "sparse_csr_tensor"]


class SparseCsrTensor(SparseTensor):
    """A matrix of which crow_indices (rows + 1), col_indices (nnz) and values (nnz) are held; it computes as a SparseTensor."""

    layout = property(lambda self: strata.sparse_csr)
    is_sparse = False
    is_sparse_csr = True

    def _like(self, values: Tensor, indices: Tensor | None = None, size: Any = None, coalesced: bool | None = None) -> SparseTensor:
        if indices is None and size is None:
            return _make(self._sparse_crow, self._sparse_indices[1], values, self._sparse_size)
        return super()._like(values, indices, size, coalesced)

    def crow_indices(self) -> Tensor:
        """Where each row's values begin, and their count."""
        return self._sparse_crow

    def col_indices(self) -> Tensor:
        """The columns of the values."""
        return self._sparse_indices[1]

    def indices(self) -> Tensor:
        raise RuntimeError("indices expected sparse coordinate tensor layout but got SparseCsr")

    def coalesce(self) -> SparseTensor:
        raise RuntimeError("coalesce expected sparse coordinate tensor layout but got SparseCsr")

    def values(self) -> Tensor:
        return self._sparse_values

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None, **_: Any) -> SparseTensor:
        """The matrix in coordinate format."""
        return self if layout is strata.sparse_csr else self.to_sparse_coo()

    def to_sparse_coo(self) -> SparseTensor:
        return SparseTensor.make(self._sparse_indices, self._sparse_values, self._sparse_size, True)

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseCsrTensor:
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseCsrTensor:
        values = self._sparse_values.to(*args, **kwargs)
        if values is self._sparse_values:
            return self
        return _make(self._sparse_crow.to(values.device), self.col_indices().to(values.device), values, self._sparse_size)

    def clone(self, **_: Any) -> SparseCsrTensor:
        return _make(self._sparse_crow.clone(), self.col_indices().clone(), self._sparse_values.clone(), self._sparse_size)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        return self.to_sparse_coo().transpose(dim0, dim1)

    def __deepcopy__(self, memo: dict) -> SparseCsrTensor:
        if id(self) not in memo:
            values = self._sparse_values.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = _make(self._sparse_crow.clone(), self.col_indices().clone(), values, self._sparse_size)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        from strata._utils import _rebuild_sparse_tensor

        parts = (self._sparse_crow, self.col_indices(), self._sparse_values, self._sparse_size)
        return _rebuild_sparse_tensor, (strata.sparse_csr, parts)

    def __repr__(self, **_: Any) -> str:
        return _text(self, {"crow_indices": self._sparse_crow, "col_indices": self.col_indices()})


def _make(crow: Tensor, col: Tensor, values: Tensor, size: Any) -> SparseCsrTensor:
    rows = strata.arange(crow.shape[0] - 1, device=crow.device).repeat_interleave(crow[1:] - crow[:-1])
    made = SparseTensor.make(strata.stack([rows, col.long()]), values, size, True, SparseCsrTensor)
    made._sparse_crow = crow
    return made


def from_coo(x: SparseTensor) -> SparseCsrTensor:
    """A matrix in coordinate format by rows. RuntimeError for other than matrices of numbers."""
    if x.dim() != 2 or x.dense_dim():
        raise RuntimeError(f"to_sparse_csr: expected a matrix without dense dims, got {x.dim()} dims")
    x = x.coalesce()
    return _make(_convert_indices_from_coo_to_csr(x.indices()[0], x.shape[0]), x.indices()[1], x.values(), x.shape)


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Of rows in rising order, a number for each value: where each of `size` rows begins, and how many values there are."""
    if input.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    counts = strata.bincount(input, minlength=size)
    ends = strata.cat([counts.new_zeros(1), counts.cumsum(0)])
    return ends.int() if out_int32 else ends


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """(2, nnz): the row and the column of each value; the column and the row with transpose."""
    rows = strata.arange(len(crow_indices) - 1, device=crow_indices.device).repeat_interleave(crow_indices.diff().long())
    both = strata.stack([col_indices.long(), rows] if transpose else [rows, col_indices.long()])
    return both.int() if out_int32 else both


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    check_invariants: bool | None = None,
) -> SparseCsrTensor:
    """A sparse matrix by rows. size: by default just large enough. RuntimeError where the parts do not fit."""
    values = _as_values(values, dtype, device)
    crow, col = strata.as_tensor(crow_indices), strata.as_tensor(col_indices)
    if size is None:
        size = (crow.shape[0] - 1, int(col.max()) + 1 if col.numel() else 0)
    if values.dim() != 1 or crow.dim() != 1 or col.shape != values.shape:
        raise RuntimeError(
            f"sparse_csr_tensor: expected crow_indices (rows + 1), col_indices and values (nnz), got {list(crow.shape)}, "
            f"{list(col.shape)} and {list(values.shape)}"
        )
    steps = crow[1:] - crow[:-1]
    if crow.shape[0] != size[0] + 1 or int(crow[0]) or int(crow[-1]) != values.shape[0] or bool((steps < 0).any()):
        raise RuntimeError(
            "sparse_csr_tensor: crow_indices must have size[0] + 1 elements that rise from 0 to the number of values"
        )
    if col.numel() and not 0 <= int(col.min()) <= int(col.max()) < size[1]:
        raise RuntimeError(f"sparse_csr_tensor: col_indices must lie in [0, {size[1]})")
    if requires_grad:
        values = values.detach().clone().requires_grad_()
    return _make(crow, col, values, size)
