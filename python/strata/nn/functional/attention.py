"""Multi-head attention as a function of its weights. Source: arXiv:1706.03762.

Layout inside: (N * heads, length, head size); the outer layout is PyTorch's (length, N, embedding).
"""

from __future__ import annotations

import math
import warnings

import strata
from strata import Tensor

from .. import _ops
from .._ops import has_torch_function, overridden


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _is_batched(
    query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None, mask: Tensor | None, heads: int
) -> bool:
    """True for (L, N, E) inputs, False for (L, E); AssertionError where the other inputs do not fit that."""
    rank = query.dim()
    _require(rank in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    word = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    _require(
        key.dim() == rank and value.dim() == rank,
        f"For {word} `query`, expected `key` and `value` to be {rank}-D "
        f"but found {key.dim()}-D and {value.dim()}-D tensors respectively",
    )
    if padding_mask is not None:
        _require(
            padding_mask.dim() == rank - 1,
            f"For {word} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D "
            f"but found {padding_mask.dim()}-D tensor instead",
        )
    if mask is not None:
        _require(
            mask.dim() in (2, 3),
            f"For {word} `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
            f"but found {mask.dim()}-D tensor instead",
        )
        if rank == 2 and mask.dim() == 3:
            expected = (heads, query.shape[0], key.shape[0])
            _require(tuple(mask.shape) == expected, f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return rank == 3


def _none_or_dtype(input: Tensor | None) -> strata.dtype | None:
    """The dtype of a mask that may be None."""
    if input is None or isinstance(input, Tensor):
        return None if input is None else input.dtype
    raise RuntimeError(f"input to _none_or_dtype() must be None or strata.Tensor, got {type(input).__name__}")


def _canonical_mask(
    mask: Tensor | None, mask_name: str, other_type: strata.dtype | None, other_name: str, target_type: strata.dtype, check_other: bool = True
) -> Tensor | None:
    """`mask` as numbers to add to scores: a bool mask becomes -inf where True. Warns where another mask's dtype differs."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    _require(mask.dtype == strata.bool or floating, f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and other_type != mask.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if floating:
        return mask
    return strata.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _additive_mask(
    mask: Tensor | None, name: str, dtype: strata.dtype, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    return _canonical_mask(mask, name, _none_or_dtype(other), other_name, dtype)


def _project_packed(q: Tensor, k: Tensor, v: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Query, key and value through one stacked weight (3E, E), with as few products as the inputs allow."""
    if k is v and q is k:
        return _ops.linear(q, weight, bias).chunk(3, -1)
    size = q.size(-1)
    w_q, w_kv = weight.split([size, 2 * size])
    b_q, b_kv = (None, None) if bias is None else bias.split([size, 2 * size])
    if k is v:
        return [_ops.linear(q, w_q, b_q), *_ops.linear(k, w_kv, b_kv).chunk(2, -1)]
    w_k, w_v = w_kv.chunk(2)
    b_k, b_v = (None, None) if b_kv is None else b_kv.chunk(2)
    return [_ops.linear(q, w_q, b_q), _ops.linear(k, w_k, b_k), _ops.linear(v, w_v, b_v)]


def _project_apart(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Tensor | None, ...], bias: Tensor | None
) -> list[Tensor]:
    size = inputs[0].size(-1)
    names = ("query", "key", "value")
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    projected = []
    for name, x, weight, b in zip(names, inputs, weights, biases, strict=True):
        _require(weight is not None, f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
        expected = (size, x.size(-1))
        _require(
            tuple(weight.shape) == expected,
            f"expecting {name} weights shape of {expected}, but got {weight.shape}",
        )
        projected.append(_ops.linear(x, weight, b))
    return projected


def _check_static(name: str, static: Tensor, rows: int, head_size: int) -> Tensor:
    _require(static.size(0) == rows, f"expecting {name}.size(0) of {rows}, but got {static.size(0)}")
    _require(static.size(2) == head_size, f"expecting {name}.size(2) of {head_size}, but got {static.size(2)}")
    return static


def _checked_mask(mask: Tensor, batch: int, heads: int, target: int, source: int) -> Tensor:
    """`mask` as (1 or N * heads, L, S). RuntimeError for another shape."""
    expected = (target, source) if mask.dim() == 2 else (batch * heads, target, source)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of query (L, N, E) over key and value (S, N, E), or without N; the output has query's shape.

    The second result is the attention weights (N, L, S), or per head (N, heads, L, S), where need_weights; else None.
    key_padding_mask (N, S) and attn_mask (L, S) or (N * heads, L, S): bool with True to leave out, or float to add.
    is_causal is a hint that attn_mask is the causal one. AssertionError and RuntimeError name shapes that do not fit.
    """
    tensors = (query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias)
    if has_torch_function(tensors):
        return overridden(multi_head_attention_forward, tensors, locals())
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # One tensor for all three stays one, so that a single product serves them.
        alone = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = (alone[id(x)] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, size = query.shape
    head_size = size // num_heads
    rows = batch * num_heads

    key_padding_mask = _additive_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the attention operator makes the causal mask itself
    else:
        attn_mask = _additive_mask(attn_mask, "attn_mask", query.dtype)
        is_causal = False
    _require(size == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}")
    _require(head_size * num_heads == size, f"embed_dim {size} not divisible by num_heads {num_heads}")

    if use_separate_proj_weight:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart((query, key, value), weights, in_proj_bias)
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, batch, num_heads, target, key.shape[0])

    extra = 0  # positions appended to keys and values, which no mask covers
    if bias_k is not None or bias_v is not None:
        _require(bias_k is not None, "bias_v is set but bias_k is None")
        _require(bias_v is not None, "bias_k is set but bias_v is None")
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k = strata.cat([k, bias_k.repeat(1, batch, 1)])
        v = strata.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1

    def by_head(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], rows, head_size).transpose(0, 1)

    q = by_head(q)
    k = by_head(k) if static_k is None else _check_static("static_k", static_k, rows, head_size)
    v = by_head(v) if static_v is None else _check_static("static_v", static_v, rows, head_size)
    if add_zero_attn:
        k = strata.cat([k, k.new_zeros(rows, 1, head_size)], dim=1)
        v = strata.cat([v, v.new_zeros(rows, 1, head_size)], dim=1)
        extra += 1
    source = k.size(1)
    if extra and attn_mask is not None:
        attn_mask = _ops.pad(attn_mask, [0, extra])
    if key_padding_mask is not None:
        if extra:
            key_padding_mask = _ops.pad(key_padding_mask, [0, extra])
        _require(
            tuple(key_padding_mask.shape) == (batch, source),
            f"Expected key_padding_mask of shape {(batch, source - extra)}, "
            f"but got {(key_padding_mask.shape[0], key_padding_mask.shape[1] - extra)}",
        )
        per_head = key_padding_mask.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        per_head = per_head.reshape(rows, 1, source)
        attn_mask = per_head if attn_mask is None else attn_mask + per_head
    if not training:
        dropout_p = 0.0

    if need_weights:
        scores = strata.bmm(q * math.sqrt(1.0 / head_size), k.transpose(-2, -1))
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = _ops.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = _ops.dropout(weights, dropout_p, True)
        output = strata.bmm(weights, v).transpose(0, 1).reshape(target, batch, size)
        weights = weights.reshape(batch, num_heads, target, source)
        if average_attn_weights:
            weights = weights.mean(dim=1)
    else:
        weights = None
        if attn_mask is not None:
            shape = (1, 1) if attn_mask.size(0) == 1 else (batch, num_heads)
            attn_mask = attn_mask.reshape(*shape, -1, source)
        q, k, v = (x.reshape(batch, num_heads, -1, head_size) for x in (q, k, v))
        output = _ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
        output = output.permute(2, 0, 1, 3).reshape(target, batch, size)
    output = _ops.linear(output, out_proj_weight, out_proj_bias)
    if not batched:
        output = output.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights
