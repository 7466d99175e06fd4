"""Products of groups of rows with a matrix each, as mixtures of experts have them: composed of products of two matrices."""

from __future__ import annotations

import strata
from strata import Tensor

__all__ = ["grouped_mm"]
_DTYPES = (strata.float32, strata.bfloat16, strata.float16)


def _bounds(offs: Tensor | None, size: int) -> list[tuple[int, int]]:
    """Begin and end of each group of a dim of that size."""
    ends = offs.tolist()
    begins = [0, *ends[:-1]]
    for begin, end in zip(begins, ends, strict=True):
        if not 0 <= begin <= end <= size:
            raise RuntimeError(f"grouped_mm: offs must not fall and stay within 0 and {size}, got {ends}")
    return list(zip(begins, ends, strict=True))


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: strata.dtype | None = None
) -> Tensor:
    """The product of each group of mat_a with its matrix of mat_b, of float32, bfloat16 or float16. offs: int32 [groups], where each
    group of a dim ends; its numbers are read, which a compiled function does not do inside of a graph.

    mat_a [rows, k], mat_b [groups, k, n]: rows in groups; gives [rows, n], with zeros where rows are in no group.
    mat_a [m, k], mat_b [k, n]: k in groups; gives [groups, m, n].
    mat_a [groups, m, k], mat_b [k, columns]: columns in groups; gives [m, columns].
    mat_a [groups, m, k], mat_b [groups, k, n], without offs: gives [groups, m, n].
    Gradients go to both. out_dtype: the tensors' own, alone. RuntimeError for other dtypes and dims, offs that is missing, not int32, or
    does not fit; NotImplementedError for a bias, which PyTorch has not either.
    """
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dtype not in _DTYPES:
            raise RuntimeError(f"grouped_mm: expected {name} to be of float32, bfloat16 or float16, got {mat.dtype}")
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: expected {name} to have 2 or 3 dims, got {mat.dim()}")
    if mat_a.dtype != mat_b.dtype or out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(f"grouped_mm: expected one dtype, got {mat_a.dtype}, {mat_b.dtype} and out_dtype={out_dtype}")
    if bias is not None:
        raise NotImplementedError("grouped_mm: bias is not provided; add it to the result")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"grouped_mm: contraction dimension of mat_a and mat_b must match, got {tuple(mat_a.shape)} and {tuple(mat_b.shape)}")
    if offs is None:
        return strata.bmm(mat_a, mat_b)
    if offs.dtype != strata.int32 or offs.dim() != 1:
        raise RuntimeError(f"grouped_mm: Offsets have to be int32 of one dim, got {offs.dtype} of {offs.dim()}")
    split = mat_a.shape[-1] if mat_a.dim() == mat_b.dim() else mat_a.shape[0] if mat_a.dim() == 2 else mat_b.shape[1]
    bounds = _bounds(offs, split)
    if mat_a.dim() == mat_b.dim():
        return strata.stack([mat_a[:, begin:end] @ mat_b[begin:end] for begin, end in bounds])
    matrices = mat_b if mat_a.dim() == 2 else mat_a
    if len(bounds) != matrices.shape[0]:
        raise RuntimeError(f"grouped_mm: matrix batch sizes have to match: {len(bounds)} groups and {matrices.shape[0]} matrices")
    if mat_a.dim() == 2:
        parts = [mat_a[begin:end] @ matrix for (begin, end), matrix in zip(bounds, matrices.unbind(), strict=True)]
        rest = (split - bounds[-1][1] if bounds else split, mat_b.shape[-1])
    else:
        parts = [matrix @ mat_b[:, begin:end] for (begin, end), matrix in zip(bounds, matrices.unbind(), strict=True)]
        rest = (mat_a.shape[1], split - bounds[-1][1] if bounds else split)
    dim = 0 if mat_a.dim() == 2 else 1
    return strata.cat([*parts, mat_a.new_zeros(rest)], dim)


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: strata.dtype | None = None
) -> Tensor:
    """grouped_mm by its older name."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)
