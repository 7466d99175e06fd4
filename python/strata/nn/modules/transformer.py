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
from .multihead_attention import MultiheadAttention, infers
from .normalization import LayerNorm
from .utils import _check_layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _get_clones(module: Module, N: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"{type(module).__name__} is not a Module subclass")
    _check_layers(N)
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    return strata.full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    return src.shape[1 if batch_first and src.dim() == 3 else 0]


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """The caller's word where given, else whether `mask` is the causal one (of this size)."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    length = mask.size(-2) if size is None else size
    if tuple(mask.shape) != (length, length):
        return False
    causal = _generate_square_subsequent_mask(length, mask.device, mask.dtype if mask.is_floating_point() else None)
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
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    # Blocks have PyTorch's names and arguments: programs override them, to see the weights or to attend in another way.
    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask, "is_causal": is_causal}
        return self.dropout1(self.self_attn(x, x, x, need_weights=False, **masks)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        last = self.dropout3 if self._attends_memory else self.dropout2
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _residual(self, x: Tensor, norm: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))


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
        x = self._residual(src, self.norm1, lambda y: self._sa_block(y, mask, padding, is_causal=is_causal))
        return self._residual(x, self.norm2, self._ff_block)


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
        x = self._residual(tgt, self.norm1, lambda y: self._sa_block(y, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._residual(x, self.norm2, lambda y: self._mha_block(y, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask, "is_causal": is_causal}
        return self.dropout2(self.multihead_attn(x, mem, mem, need_weights=False, **masks)[0])


def _leaves_padding_out(layer: Module) -> bool:
    """Whether PyTorch's inference path takes layers like this one."""
    if not isinstance(layer, TransformerEncoderLayer) or layer.norm_first or not layer.activation_relu_or_gelu:
        return False
    return layer.self_attn.batch_first and layer.norm1.eps == layer.norm2.eps and layer.self_attn._has_inference_path()


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
        self.layers = _get_clones(encoder_layer, num_layers)
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
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, self.layers[0].self_attn.batch_first))
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
        if not getattr(self, "use_nested_tensor", False):
            return False
        layer = self.layers[0]
        attention = layer.self_attn
        read = [src, attention.in_proj_weight, attention.in_proj_bias]
        for part in (attention.out_proj, layer.norm1, layer.norm2, layer.linear1, layer.linear2):
            read += [part.weight, part.bias]
        return infers(layer, read)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer in a row, then `norm` where given."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
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
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, self.layers[0].self_attn.batch_first))
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
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

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
        return _generate_square_subsequent_mask(sz, device, dtype)
