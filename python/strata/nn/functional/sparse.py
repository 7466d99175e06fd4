"""Look-ups in tables."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _ops
from .._ops import handle_torch_function, has_torch_function_variadic


def _limit_rows_(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows of `weight` that `index` names and whose norm exceeds max_norm down to it."""
    with strata.no_grad():
        flat = index.reshape(-1)
        rows = weight.index_select(0, flat)
        norms = _ops.linalg_vector_norm(rows, norm_type, 1, True)
        scale = strata.where(norms > max_norm, max_norm / (norms + 1e-7), strata.ones_like(norms))
        weight.index_copy_(0, flat, rows * scale)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (V, D) at the integers of `input` (any shape S), of shape S + (D,).

    padding_idx: that row gets no gradient. max_norm: the rows used are first scaled down to it, in place.
    AssertionError for a padding_idx outside the table.
    """
    if has_torch_function_variadic(input, weight):
        return handle_torch_function(
            embedding,
            (input, weight),
            input,
            weight,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.size(0)
    if max_norm is not None:
        _limit_rows_(weight.detach(), input, max_norm, norm_type)
    return _ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
