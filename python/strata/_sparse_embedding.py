"""Embeddings whose gradient is sparse: the rows that were used, in the order in which they were used. It is dense where hooks, a
graph of gradients, autograd.grad or a dense gradient that is there would have it: the engine adds dense tensors."""

from __future__ import annotations

import weakref

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
        old = weight.grad
        if strata.is_grad_enabled() or strata.autograd._collects() or weight._backward_hooks or (old is not None and not old.is_sparse):
            return weight.new_zeros(weight.shape).index_add_(0, rows, values), None, None, None
        # Past the engine, which adds dense tensors only.
        made = SparseTensor.make(rows.unsqueeze(0), values.detach(), weight.shape)
        if old is not None:
            indices = strata.cat([old._indices(), made._indices()], 1)
            made = SparseTensor.make(indices, strata.cat([old._values(), made._values()]), weight.shape)
        weight.grad = made
        _watch(weight)
        return None, None, None, None


_watched: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()


def _watch(weight: Tensor) -> None:
    """A dense gradient that comes to the weight on another way finds a dense one there."""
    if _watched.get(id(weight)) is weight:
        return
    _watched[id(weight)] = weight
    known = weakref.ref(weight)

    def before_dense(_: Tensor) -> None:
        leaf = known()
        if leaf is not None and leaf.grad is not None and leaf.grad.is_sparse:
            leaf.grad = leaf.grad.to_dense()

    strata._C._register_hook(weight, before_dense)


def embedding(weight: Tensor, input: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Rows of a leaf, whose gradient backward puts into weight.grad as a sparse tensor. NotImplementedError in a graph."""
    if _capture.current() is not None:
        raise NotImplementedError("embedding: a sparse gradient cannot be part of a graph; leave out sparse=True, or look up outside of it")
    return _Embedding.apply(weight, input, padding_idx, scale_grad_by_freq)
