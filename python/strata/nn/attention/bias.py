"""Causal masks as tensors that scaled_dot_product_attention takes as attn_mask."""

from __future__ import annotations

from enum import IntEnum

import strata
from strata import Tensor
from strata.nn import functional as F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the first query and the first key stand together (UPPER_LEFT), or the last ones (LOWER_RIGHT)."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask of bools, [queries, keys], which is made only where it is printed or cannot be said by is_causal.

    NotImplementedError for other functions than scaled_dot_product_attention.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        made = strata.empty(0).as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask: True where a query sees a key."""
        shift = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return strata.ones(self.seq_len_q, self.seq_len_kv, dtype=strata.bool, device=device).tril(shift)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return _attention(*args, **kwargs)
        if getattr(func, "__name__", "") in ("__get__", "__set__"):  # attributes of the object
            return super().__torch_function__(func, types, args, kwargs)
        raise NotImplementedError("CausalBias only supports scaled_dot_product_attention")


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: CausalBias, dropout_p: float = 0.0, is_causal: bool = False, **options: Any
) -> Tensor:
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    mask, square = attn_mask, attn_mask.seq_len_q == attn_mask.seq_len_kv
    if (query.shape[-2], key.shape[-2]) != (mask.seq_len_q, mask.seq_len_kv):
        raise ValueError(
            f"scaled_dot_product_attention: expected {mask.seq_len_q} queries and {mask.seq_len_kv} keys, as the CausalBias has, "
            f"got {query.shape[-2]} and {key.shape[-2]}"
        )
    if square or mask.variant is CausalVariant.UPPER_LEFT:
        return F.scaled_dot_product_attention(query, key, value, None, dropout_p, True, **options)
    return F.scaled_dot_product_attention(query, key, value, mask._materialize(query.device), dropout_p, False, **options)


def _sizes(function: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{function} only supports 2D tensors")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of [queries, keys] in which query i sees the keys up to i: what is_causal=True is."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of [queries, keys] in which the last query sees all keys, and each one before it one key less."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes("causal_lower_right", size))
