"""MultiheadAttention. Source: arXiv:1706.03762."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import functional as F
from .. import init
from ..functional.attention import _additive_mask
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What strata.backends.mha says.
fastpath_enabled = True


def infers(module: Module, read: Iterable[Tensor | None]) -> bool:
    """Whether PyTorch would take its inference path: in evaluation, without autocast, where nothing that is read has gradients."""
    if not fastpath_enabled or module.training or strata.is_autocast_enabled("cpu"):
        return False
    return not strata.is_grad_enabled() or not any(t is not None and t.requires_grad for t in read)


class MultiheadAttention(Module):
    """Attention with num_heads heads over inputs (L, N, E), or (N, L, E) where batch_first, or (L, E).

    kdim, vdim: sizes of key and value where they differ from embed_dim; their weights are then separate parameters.
    ValueError for sizes that are not positive; AssertionError where num_heads does not divide embed_dim.
    """

    __module__ = "strata.nn.modules.activation"  # where PyTorch's files have it

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(strata.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Output of query's shape and the weights (None unless need_weights); see multi_head_attention_forward."""
        swap = self.batch_first and query.dim() == 3
        read = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        fast = query is key is value and self._has_inference_path() and infers(self, read)
        if swap:
            # One tensor given for several stays one, so that a single product serves them.
            swapped = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (swapped[id(x)] for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if swap:
            output = output.transpose(0, 1)
        return (output.contiguous() if fast else output), weights

    def _has_inference_path(self) -> bool:
        """Whether PyTorch has one for attention like this, whose result has no gaps."""
        plain = self._qkv_same_embed_dim and self.in_proj_bias is not None and self.bias_k is None and not self.add_zero_attn
        return plain and self.num_heads % 2 == 0

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one to add to the scores, and which it is: 0 attn_mask, 1 key_padding_mask, 2 both."""
        attn_mask = _additive_mask(attn_mask, "attn_mask", query.dtype)
        key_padding_mask = _additive_mask(key_padding_mask, "key_padding_mask", query.dtype)
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        if key_padding_mask is None:
            return attn_mask, 0
        batch, length = query.shape[:2]
        own = attn_mask.reshape(batch, -1, length, length) if attn_mask.dim() == 3 else attn_mask
        return own + key_padding_mask.reshape(batch, 1, 1, length), 2
