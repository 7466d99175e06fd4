"""Transformer layers, stacks and the whole model. Source: arXiv:1706.03762.

Sequences are (length, N, size), or (N, length, size) where batch_first. Masks are as in MultiheadAttention.
"""

from __future__ import annotations

import copy
import math

import strata
from strata import Tensor

from .. import functional as F
from .. import init
from ..functional.attention import _additive_mask
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multihead_attention import MultiheadAttention
from .normalization import LayerNorm
from .utils import _check_layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _activation(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _clones(module: Module, count: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"{type(module).__name__} is not a Module subclass")
    _check_layers(count)
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _square_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    return strata.full((size, size), -math.inf, dtype=dtype, device=device).triu(1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, sequence: Tensor, batch_first: bool) -> bool:
    """The caller's word where given, else whether `mask` is the causal one."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    length = sequence.shape[1 if batch_first and sequence.dim() == 3 else 0]
    if tuple(mask.shape) != (length, length):
        return False
    causal = _square_mask(length, mask.device, mask.dtype if mask.is_floating_point() else None)
    return bool((mask == (causal if mask.is_floating_point() else causal != 0)).all())


class _Layer(Module):
    """What both kinds of layer share: self-attention, feed-forward, and where the norms stand."""

    _attends_memory = False

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}

        def attention() -> MultiheadAttention:
            return MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **factory)

        # In the order of the state dictionary that PyTorch writes.
        count = 3 if self._attends_memory else 2
        self.self_attn = attention()
        if self._attends_memory:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _attend(
        self,
        attention: MultiheadAttention,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        return attention(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )[0]

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x: Tensor, norm: Module, dropout: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))


class TransformerEncoderLayer(_Layer):
    """Self-attention and feed-forward, each with a residual and a norm (in front where norm_first)."""

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for relu, 2 for gelu, 0 for others."""
        return {F.relu: 1, F.gelu: 2}.get(self.activation, 0)

    def __getstate__(self) -> dict[str, Any]:
        # For PyTorch, which reads whole modules that strata.save wrote.
        return super().__getstate__() | {"activation_relu_or_gelu": self.activation_relu_or_gelu}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("activation_relu_or_gelu", None)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """src and masks to a tensor of src's shape; is_causal is a hint that src_mask is the causal one."""
        padding = _additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = _additive_mask(src_mask, "src_mask", src.dtype)
        x = self._residual(
            src,
            self.norm1,
            self.dropout1,
            lambda y: self._attend(self.self_attn, y, y, mask, padding, is_causal),
        )
        return self._residual(x, self.norm2, self.dropout2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, feed-forward; residuals and norms as in the encoder layer."""

    _attends_memory = True

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt, the encoder's output and masks to a tensor of tgt's shape."""
        x = self._residual(
            tgt,
            self.norm1,
            self.dropout1,
            lambda y: self._attend(self.self_attn, y, y, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
        )
        x = self._residual(
            x,
            self.norm2,
            self.dropout2,
            lambda y: self._attend(
                self.multihead_attn, y, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            ),
        )
        return self._residual(x, self.norm3, self.dropout3, self._feed_forward)


# What strata.backends.mha says.
fastpath_enabled = True


def _leaves_padding_out(layer: Module) -> bool:
    """Whether PyTorch's inference path takes layers like this one."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first or not layer.activation_relu_or_gelu:
        return False
    attention = layer.self_attn
    same = attention._qkv_same_embed_dim and attention.in_proj_bias is not None and layer.norm1.eps == layer.norm2.eps
    return attention.batch_first and same and attention.num_heads % 2 == 0


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer in a row, then `norm` where given.

    enable_nested_tensor: in evaluation without gradients, what the layers give is 0 at padded positions at the end of a sequence
    (PyTorch's inference path leaves them out). mask_check: not where a mask has padded positions elsewhere.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _leaves_padding_out(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """src and masks to a tensor of src's shape; is_causal None: found out from the mask."""
        padding = _additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = _additive_mask(mask, "mask", src.dtype)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and src.dim() == 3 and self._infers(src):
            padded = padding != 0
            if self.mask_check:
                padded = padded & ~(padded[:, :-1] & ~padded[:, 1:]).any()
            x = x.masked_fill(padded.unsqueeze(-1), 0)
        return x if self.norm is None else self.norm(x)

    def _infers(self, src: Tensor) -> bool:
        layer = self.layers[0]
        if not (fastpath_enabled and getattr(self, "use_nested_tensor", False)) or layer.training or strata.is_autocast_enabled():
            return False
        if not strata.is_grad_enabled():
            return True
        attention = layer.self_attn
        read = [src, attention.in_proj_weight, attention.in_proj_bias]
        for part in (attention.out_proj, layer.norm1, layer.norm2, layer.linear1, layer.linear2):
            read += [part.weight, part.bias]
        return not any(t is not None and t.requires_grad for t in read)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer in a row, then `norm` where given."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt, the encoder's output and masks to a tensor of tgt's shape; tgt_is_causal None: found out."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder and decoder. RuntimeError where batches or sizes of src and tgt do not fit."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        options += (bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm()
        )
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """src through the encoder, tgt and that through the decoder; the result has tgt's shape."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """(sz, sz): -inf above the diagonal, 0 elsewhere."""
        return _square_mask(sz, device, dtype)
