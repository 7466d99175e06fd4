"""Functions of sparse tensors. Those of strata.sparse_coo_tensor and Tensor.to_sparse are Tensors, too: `@`, +, * by
numbers, t(), coalesce(), to_dense() and what _sparse_functions lists work on them."""

from __future__ import annotations

import strata
from strata import Tensor, _lazy
from strata import _sparse_functions as _functions
from strata._sparse_coo import SparseTensor, sparse_coo_tensor
from strata._sparse_functions import hspmm, smm, sspaddmm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "addmm", "as_sparse_gradcheck", "hspmm", "log_softmax", "mm", "sampled_addmm", "smm", "softmax", "spdiags", "sspaddmm", "sum",
]  # fmt: skip


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix and a dense or sparse one, with gradients to values and dense matrices."""
    if reduce != "sum":
        raise NotImplementedError(f"sparse.mm: reduce={reduce!r} is not provided; only 'sum'")
    return _functions.matmul(mat1, mat2)


def spmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """mm under its older name."""
    return mm(mat1, mat2)


dsmm = spmm  # its oldest name


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2, where mat1 is sparse."""
    return _functions.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:  # noqa: A001
    """The sum of all elements, dense; over dims, sparse while a sparse dim is left."""
    return _functions.sum_(input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """softmax over the elements that a sparse tensor holds, along a dim."""
    return _functions.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
    return _functions.softmax(input, dim, dtype, log=True)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the places that the sparse input holds."""
    rows, columns = input._indices()
    product = (mat1.index_select(0, rows) * mat2.mT.index_select(0, columns)).sum(-1)
    return input._like(input._values() * beta + product * alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple, layout: Any = None) -> Tensor:
    """A matrix with the rows of `diagonals` on the diagonals `offsets`."""
    diagonals, offsets = strata.atleast_2d(diagonals), strata.atleast_1d(offsets)
    rows, columns = shape
    indices, values = [], []
    for diagonal, offset in zip(diagonals, offsets.tolist(), strict=True):
        j = strata.arange(max(0, offset), min(columns, rows + offset, diagonal.shape[0]))
        indices.append(strata.stack([j - offset, j]))
        values.append(diagonal[j])
    found = sparse_coo_tensor(strata.cat(indices, 1), strata.cat(values), shape)
    return found if layout is None else found.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """The function itself: gradcheck takes the values of sparse tensors."""
    return gradcheck


class check_sparse_tensor_invariants:
    """Indices are always checked where a sparse tensor is made."""

    @staticmethod
    def is_enabled() -> bool:
        return True

    @staticmethod
    def enable() -> None:
        """Nothing: they are."""

    @staticmethod
    def disable() -> None:
        """Nothing: they stay so."""

    def __init__(self, enable: bool = True) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Legacy(type):
    """sparse.FloatTensor(indices, values, size) makes a tensor of that dtype; isinstance asks for both."""

    dtype: Any = None

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if args and isinstance(args[0], Tensor):
            indices, values, *size = args
            return sparse_coo_tensor(indices, values.to(cls.dtype), size[0] if size else None, device=device)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return sparse_coo_tensor(tuple(size), dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype == cls.dtype


def _make(name: str) -> type:
    from strata._legacy_types import DTYPES

    return _Legacy(name, (), {"__module__": __name__, "dtype": getattr(strata, DTYPES[name]), "__doc__": f"A sparse {name}."})


__getattr__, __dir__ = _lazy.of(globals(), otherwise=_make)
