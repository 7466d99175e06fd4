"""Embeddings whose gradient is sparse: the rows that were used, in the order in which they were used."""

from __future__ import annotations

import strata
from strata import Tensor, _capture
from strata._sparse_coo import SparseTensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["embedding"]


class _Embedding(strata.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, input: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
        ctx.weight, ctx.settings = weight, (padding_idx, scale_grad_by_freq)
        ctx.save_for_backward(input)
        return strata.embedding(weight, input)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        (input,) = ctx.saved_tensors
        padding_idx, by_frequency = ctx.settings
        weight, rows = ctx.weight, input.reshape(-1).long()
        values = grad.reshape(-1, weight.shape[1])
        if by_frequency:
            values = values / strata.bincount(rows, minlength=weight.shape[0]).index_select(0, rows).to(values.dtype).unsqueeze(1)
        if padding_idx >= 0:
            kept = (rows != padding_idx).nonzero()[:, 0]
            rows, values = rows.index_select(0, kept), values.index_select(0, kept)
        made = SparseTensor.make(rows.unsqueeze(0), values.detach(), weight.shape)
        # Past the engine, which adds dense tensors only.
        old = weight.grad
        if old is not None and old.is_sparse:
            indices = strata.cat([old._indices(), made._indices()], 1)
            made = SparseTensor.make(indices, strata.cat([old._values(), made._values()]), weight.shape)
        elif old is not None:
            made = old + made.to_dense()
        weight.grad = made
        return None, None, None, None


def embedding(weight: Tensor, input: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Rows of a leaf, whose gradient backward puts into weight.grad as a sparse tensor. NotImplementedError in a graph."""
    if _capture.current() is not None:
        raise NotImplementedError("embedding: a sparse gradient cannot be part of a graph; leave out sparse=True, or look up outside of it")
    return _Embedding.apply(weight, input, padding_idx, scale_grad_by_freq)
