"""Products of groups of rows with a matrix each, as mixtures of experts have them: composed of products of two matrices.

They are one operator, aten::_grouped_mm, as where the groups end is read of a tensor: so a graph holds the operator, not one such reading.
"""

from __future__ import annotations

import strata
from strata import Tensor, library

from .._ops import has_torch_function_variadic, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["grouped_mm"]
_DTYPES = (strata.float32, strata.bfloat16, strata.float16)


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: strata.dtype | None = None
) -> Tensor:
    """The product of each group of mat_a with its matrix of mat_b, of float32, bfloat16 or float16. offs: int32 [groups], where each
    group of a dim ends.

    mat_a [rows, k], mat_b [groups, k, n]: rows in groups; gives [rows, n], with zeros where rows are in no group.
    mat_a [m, k], mat_b [k, n]: k in groups; gives [groups, m, n].
    mat_a [groups, m, k], mat_b [k, columns]: columns in groups; gives [m, columns].
    mat_a [groups, m, k], mat_b [groups, k, n], without offs: gives [groups, m, n].
    Gradients go to both. out_dtype: the tensors' own, alone. RuntimeError for other dtypes and dims, offs that is missing, not int32, or
    does not fit; NotImplementedError for a bias, which PyTorch has not either.
    """
    if has_torch_function_variadic(mat_a, mat_b):
        return overridden(grouped_mm, (mat_a, mat_b), locals())
    return strata.ops.aten._grouped_mm.default(mat_a, mat_b, offs, bias, out_dtype)


def _grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: strata.dtype | None = None
) -> Tensor:
    """grouped_mm by its older name."""
    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _checked(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: strata.dtype | None) -> tuple[int, ...]:
    """The shape of the result. RuntimeError for what does not fit together."""
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
        if mat_a.shape[0] != mat_b.shape[0]:
            raise RuntimeError(f"grouped_mm: matrix batch sizes have to match, got {mat_a.shape[0]} and {mat_b.shape[0]}")
        return mat_a.shape[0], mat_a.shape[1], mat_b.shape[2]
    if offs.dtype != strata.int32 or offs.dim() != 1:
        raise RuntimeError(f"grouped_mm: Offsets have to be int32 of one dim, got {offs.dtype} of {offs.dim()}")
    if mat_a.dim() == mat_b.dim():
        return offs.shape[0], mat_a.shape[0], mat_b.shape[1]
    matrices = mat_b if mat_a.dim() == 2 else mat_a
    if offs.shape[0] != matrices.shape[0]:
        raise RuntimeError(f"grouped_mm: matrix batch sizes have to match: {offs.shape[0]} groups and {matrices.shape[0]} matrices")
    return mat_a.shape[-2], mat_b.shape[-1]


def _bounds(offs: Tensor, size: int) -> list[tuple[int, int]]:
    """Begin and end of each group of a dim of that size."""
    ends = offs.tolist()
    found = list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []
    if not all(0 <= begin <= end <= size for begin, end in found):
        raise RuntimeError(f"grouped_mm: offs must not fall and stay within 0 and {size}, got {ends}")
    return found


def _computed(self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    shape = _checked(self, mat2, offs, bias, out_dtype)
    if offs is None:
        return strata.bmm(self, mat2)
    made = self.new_zeros(shape)
    if self.dim() == mat2.dim():
        for i, (begin, end) in enumerate(_bounds(offs, self.shape[1])):
            made[i] = self[:, begin:end] @ mat2[begin:end]
    elif self.dim() == 2:
        for i, (begin, end) in enumerate(_bounds(offs, shape[0])):
            made[begin:end] = self[begin:end] @ mat2[i]
    else:
        for i, (begin, end) in enumerate(_bounds(offs, shape[1])):
            made[:, begin:end] = self[i] @ mat2[:, begin:end]
    return made


def _shaped(self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    return self.new_empty(_checked(self, mat2, offs, bias, out_dtype))


def _note(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _backward(ctx: Any, grad: Tensor) -> tuple:
    a, b, offs = ctx.saved_tensors
    to_a = _grouped_mm(grad, b.transpose(-1, -2), offs) if ctx.needs_input_grad[0] else None
    to_b = _grouped_mm(a.transpose(-1, -2), grad, offs) if ctx.needs_input_grad[1] else None
    return to_a, to_b, None, None, None


_library = library.Library("aten", "FRAGMENT")
_library.define("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor")
_library.impl("_grouped_mm", _computed, "CompositeExplicitAutograd")
_library.impl("_grouped_mm", _shaped, "Meta")
library.register_autograd("aten::_grouped_mm", _backward, setup_context=_note, lib=_library)
