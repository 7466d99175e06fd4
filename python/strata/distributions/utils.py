"""Helpers of distributions under PyTorch's names."""

from __future__ import annotations

import strata
from strata import Tensor

from ._by_probability import clamped
from .distribution import broadcast_all, lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060
lazy_property = lazily
clamp_probs = clamped


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """sigmoid of logits, or softmax over the last dim."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """log(p / (1 - p)), or log(p)."""
    probs = clamped(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Vectors (*, n) as lower triangular matrices, filled row by row from that diagonal down."""
    n = round(0.5 * (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5))
    if n * (n + 2 * diag + 1) // 2 - diag * (diag + 1) // 2 * (diag > 0) != vec.shape[-1] and diag <= 0:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    rows, columns = strata.tril_indices(n, n, diag)
    flat = vec.new_zeros(vec.shape[:-1] + (n * n,)).index_add(-1, rows * n + columns, vec)
    return flat.reshape(vec.shape[:-1] + (n, n))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of matrices (*, n, n) from that diagonal down, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = strata.tril_indices(n, n, diag)
    return mat.flatten(-2).index_select(-1, rows * n + columns)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dims."""
    return value if dim == 0 else value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Draws of the standard normal distribution."""
    return strata.normal(strata.zeros(shape, dtype=dtype, device=device), strata.ones(shape, dtype=dtype, device=device))
