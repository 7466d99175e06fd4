"""Look-ups in tables."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_variadic, overridden


def _limit_rows_(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows of `weight` that `index` names and whose norm exceeds max_norm down to it."""
    with strata.no_grad():
        flat = index.reshape(-1).long()
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

    padding_idx: that row gets no gradient. sparse: backward puts a sparse tensor of the rows that were used into the grad of a
    leaf, where nothing else asks for its gradient (hooks, autograd.grad, a dense gradient that is there). max_norm: the rows used
    are first scaled down to it, in place.
    AssertionError for a padding_idx outside the table.
    """
    if has_torch_function_variadic(input, weight):
        return overridden(embedding, (input, weight), locals())
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx % weight.size(0)
    if max_norm is not None:
        _limit_rows_(weight.detach(), input, max_norm, norm_type)
    if sparse and weight.requires_grad and weight.is_leaf and strata.is_grad_enabled():
        from strata._sparse_embedding import embedding as with_sparse_gradient

        return with_sparse_gradient(weight, input, padding_idx, scale_grad_by_freq)
    return _ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse and weight.is_leaf)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of the rows of `weight` (V, D) over bags, of shape (bags, D); empty bags are zeros.

    input: one bag a row (bags, n), or 1-d with `offsets` saying where each bag begins. per_sample_weights (mode "sum")
    multiply the rows. Rows padding_idx do not count.
    """
    if has_torch_function_variadic(input, weight):
        return overridden(embedding_bag, (input, weight), locals())
    _check_bags(input, weight, offsets, per_sample_weights, mode, scale_grad_by_freq, sparse)
    if include_last_offset and offsets is not None and offsets.numel():  # where the last bag ends
        input = input[: int(offsets[-1])]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[: int(offsets[-1])]
    if input.dim() == 2:
        bags, each = input.shape
        bag = strata.arange(bags, device=input.device).repeat_interleave(each)
    else:
        bags = offsets.numel() - include_last_offset
        marks = input.new_zeros(input.numel() + 1, dtype=strata.int64)
        bag = marks.index_add(0, offsets[:bags].long(), marks.new_ones(bags)).cumsum(0)[:-1] - 1
    index = input.reshape(-1).long()
    if padding_idx is not None:
        bag = strata.where(index == padding_idx % weight.size(0), -1, bag)
    narrow = weight.dtype in (strata.float16, strata.bfloat16)
    if mode == "max" or scale_grad_by_freq or (sparse and weight.requires_grad) or (mode == "mean" and narrow):
        total = _bags_of_rows(embedding(index, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse), bag, bags, per_sample_weights, mode)
    else:
        if max_norm is not None:
            _limit_rows_(weight.detach(), index, max_norm, norm_type)
        factors = weight.new_ones([]).expand(index.shape) if per_sample_weights is None else per_sample_weights.reshape(-1)
        total = strata.ops.strata._bag_sum(weight, index, bag, factors, bags)
    if mode == "mean":
        counts = bag.new_zeros(bags + 1).index_add(0, bag + 1, strata.ones_like(bag))[1:]
        total = total / counts.clamp(min=1)[:, None].to(total.dtype)
    return total.to(weight.dtype)


def _bags_of_rows(rows: Tensor, bag: Tensor, bags: int, factors: Tensor | None, mode: str) -> Tensor:
    """Maxima, or sums in float32 at least, of rows that are stored one by one. bag: -1 for those that do not count."""
    kept = (bag >= 0).nonzero()[:, 0]
    rows, bag = rows[kept], bag[kept]
    if mode == "max":
        found = rows.new_zeros([bags, rows.size(1)])
        return found.scatter_reduce(0, bag[:, None].expand_as(rows), rows, "amax", include_self=False)
    wide = rows.float() if rows.dtype in (strata.float16, strata.bfloat16) else rows
    if factors is not None:
        wide = wide * factors.reshape(-1, 1)[kept]
    return wide.new_zeros([bags, rows.size(1)]).index_add(0, bag, wide)


def _check_bags(input, weight, offsets, per_sample_weights, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("max mode does not support scaling the gradient by the frequency or sparse weights")
    if not weight.is_floating_point():
        raise RuntimeError(f"embedding_bag: expected weight of a floating dtype, got {weight.dtype}; convert it first")
    if weight.dim() != 2:
        raise RuntimeError(f"embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                f"(got mode={mode!r})"
            )
        if tuple(per_sample_weights.shape) != tuple(input.shape):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have "
                f"the same shape as the input ({list(input.shape)})"
            )
        if per_sample_weights.dtype != weight.dtype:
            raise RuntimeError(
                f"expected per_sample_weights of the dtype of weight, {weight.dtype}, got {per_sample_weights.dtype}"
            )
    for name, t in (("input", input), ("offsets", offsets)):
        if t is not None and t.dtype not in (strata.int32, strata.int64):
            raise RuntimeError(f"embedding_bag: expected {name} of int32 or int64, got {t.dtype}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch")
        return
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if offsets.numel() and strata._C._recording() is not None:  # checked by each run of the graph
        check = strata.ops.strata._check
        check(offsets[0] == 0, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0")
        check(offsets[-1] <= input.numel(), f"offsets[-1] can not be greater than input's length ({input.numel()})")
        return
    if offsets.numel() and int(offsets[0]) != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0; got {int(offsets[0])}"
        )
    if offsets.numel() and int(offsets[-1]) > input.numel():
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length ({input.numel()}), got {int(offsets[-1])}"
        )
