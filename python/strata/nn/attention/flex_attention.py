"""Attention whose scores a function changes (score_mod) and another one hides (mask_mod), as composed operators.

score_mod(score, b, h, q_idx, kv_idx) gives a score, mask_mod(b, h, q_idx, kv_idx) a bool: both are written for one place, of
0-dim tensors, and are run for all places at once. All scores are held: [batch, heads, queries, keys]. Gradients are those of the
operators, of what the functions read, too. A block mask says which keys are seen; its blocks are for those who look at it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import strata
from strata import Tensor
from strata.nn.attention._places import everywhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]
_BLOCK = _DEFAULT_SPARSE_BLOCK_SIZE = 128  # the latter is the name in PyTorch's file
_TENSORS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


class AuxRequest(NamedTuple):
    """What flex_attention gives beside its result: the logarithms of the sums of exponentials, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for, float32 [batch, heads, queries] each; None where it was not."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask_mod that hides nothing."""
    return batch.new_ones(size=(), dtype=strata.bool, device=batch.device)


def and_masks(*mask_mods: Callable) -> Callable:
    """The mask_mod that shows what all of these show. RuntimeError for what cannot be called."""
    return _joined(mask_mods, True)


def or_masks(*mask_mods: Callable) -> Callable:
    """The mask_mod that shows what any of these shows. RuntimeError for what cannot be called."""
    return _joined(mask_mods, False)


def _joined(mask_mods: tuple[Callable, ...], every: bool) -> Callable:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=strata.bool) if every else b.new_zeros((), dtype=strata.bool)
        for mod in mask_mods:
            result = result & mod(b, h, q_idx, kv_idx) if every else result | mod(b, h, q_idx, kv_idx)
        return result

    return mask


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """mod_fn, a mask_mod, at every place: bool [B, H, Q_LEN, KV_LEN], where None is 1."""
    counts = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = [strata.arange(n, device=device) for n in counts]
    with strata.no_grad():
        return everywhere(mod_fn, None, places).expand(counts).to(strata.bool)


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Of 0 or 1 [.., rows, columns]: how many ones each row has, and its columns with the ones first; int32."""
    return blocks.sum(-1, dtype=strata.int32), blocks.argsort(dim=-1, descending=True, stable=True).to(strata.int32)


class BlockMask:
    """Which blocks of keys each block of queries sees, and the mask_mod that says it for each place.

    kv_num_blocks [B, H, rows]: blocks seen in part; kv_indices [B, H, rows, columns]: their columns, first. full_...: blocks that
    are seen as a whole, or None. q_...: the same of the columns. Made by create_block_mask, or of the first four by from_kv_blocks.
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None, BLOCK_SIZE: tuple[int, int], mask_mod: Callable,
    ) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-1, -2))
        self.full_q_num_blocks = self.full_q_indices = None
        if full_kv_num_blocks is not None and full_kv_indices is not None:
            self.full_q_num_blocks, self.full_q_indices = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-1, -2))

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None, full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _BLOCK, mask_mod: Callable | None = None, seq_lengths: tuple[int, int] | None = None,
    ) -> BlockMask:  # fmt: skip
        """A mask of blocks alone. Without mask_mod, what is seen is said by the blocks."""
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, sizes, mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """All that it holds."""
        sizes = (*self.seq_lengths, ) if flatten else (self.seq_lengths,)
        blocks = (*self.BLOCK_SIZE, ) if flatten else (self.BLOCK_SIZE,)
        return (*sizes, *self._tensors(), *blocks, self.mask_mod)

    def _tensors(self) -> tuple:
        return tuple(getattr(self, name) for name in _TENSORS)

    def to_dense(self) -> Tensor:
        """1 for each block that is seen, wholly or in part: int32 [B, H, rows, columns]."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def numel(self) -> int:
        """Places of the mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The part of the places that lie in blocks which are not seen, in per cent."""
        seen = int(self.to_dense().sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - seen / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The same on another device."""
        first = [None if t is None else t.to(device) for t in self._tensors()[:4]]
        return BlockMask(self.seq_lengths, *first, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks; its mask_mod must be set anew."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i + self.kv_indices.shape[d], i + self.kv_indices.shape[d] + 1) if isinstance(i, int) and i < 0
                      else slice(i, i + 1) if isinstance(i, int) else i for d, i in enumerate(index))  # fmt: skip
        first = [None if t is None else t[index] for t in self._tensors()[:4]]
        lengths = (first[1].shape[-2] * self.BLOCK_SIZE[0] if len(index) > 2 else self.seq_lengths[0], self.seq_lengths[1])
        return BlockMask(lengths, *first, self.BLOCK_SIZE, _unset)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks, of at most grid_size characters a side (-1: all), for at most `limit` batches and heads."""
        rows, columns = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        dense = self.to_dense()
        *batches, height, width = dense.shape
        rows, columns = (n if n < 0 else min(wanted, n) if wanted > 0 else n for wanted, n in ((rows, height), (columns, width)))
        up, across = -(-height // rows), -(-width // columns)
        pictures = []
        for i in range(min(math.prod(batches), limit)):
            place, rest = [], i
            for n in reversed(batches):
                place.insert(0, rest % n)
                rest //= n
            blocks, lines = dense[tuple(place)].tolist(), []
            for r in range(0, height, up):
                line = ""
                for c in range(0, width, across):
                    window = [x for row in blocks[r : r + up] for x in row[c : c + across]]
                    part = sum(window) / len(window)
                    line += ("██" if part == 1 else "░░" if part > 0 else "  ")
                lines.append(line)
            pictures.append(f"{tuple(place)}\n" + "\n".join(lines))
        more = "\n..." if math.prod(batches) > limit else ""
        return "\n".join(pictures) + more

    def __repr__(self) -> str:
        shapes = {name: None if t is None else t.shape for name, t in zip(_TENSORS, self._tensors(), strict=True)}
        rest = {"BLOCK_SIZE": self.BLOCK_SIZE, "shape": self.shape, "sparsity": f"{self.sparsity():.2f}%", "mask_mod": self.mask_mod}
        return "BlockMask(\n" + ",\n".join(f"    {name}={value}" for name, value in {**shapes, **rest}.items()) + "\n)"

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"


def _unset(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask: set its mask_mod to one that counts from where the slice begins")


def _dense(counts: Tensor, columns: Tensor) -> Tensor:
    """The blocks of each row's first columns: 0 or 1, int32 [.., rows, columns]."""
    width = columns.shape[-1]
    counted = (strata.arange(width, device=columns.device) < counts[..., None]).to(strata.int32)
    return strata.zeros(columns.shape, dtype=strata.int32, device=columns.device).scatter_add(-1, columns.long(), counted)


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _BLOCK, _compile: bool = False,
) -> BlockMask:  # fmt: skip
    """The block mask of a mask_mod for B batches and H heads (None: one for all) of Q_LEN queries and KV_LEN keys.

    ValueError for a mask_mod that does not take four arguments or block sizes that are not positive.
    """
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    if min(sizes) < 1:
        raise ValueError(f"create_block_mask: expected positive block sizes, got {sizes}")
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    below, right = -Q_LEN % sizes[0], -KV_LEN % sizes[1]
    mask = strata.nn.functional.pad(mask.to(strata.int32), (0, right, 0, below))
    blocks = mask.unflatten(-2, (-1, sizes[0])).unflatten(-1, (-1, sizes[1])).sum((-3, -1), dtype=strata.int32)
    full = blocks == sizes[0] * sizes[1]
    partial = (blocks > 0) & ~full
    return BlockMask((Q_LEN, KV_LEN), *_ordered(partial.to(strata.int32)), *_ordered(full.to(strata.int32)), sizes, mask_mod)


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(f"flex_attention: expected one dtype, got {query.dtype}, {key.dtype} and {value.dtype}")
    if query.shape[1] != key.shape[1] and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[1]} and Hkv={key.shape[1]}. "
            "Try setting enable_gqa=True for GQA."
        )
    if query.shape[1] % key.shape[1]:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={query.shape[1]} and Hkv={key.shape[1]}.")
    if query.shape[0] != key.shape[0] and (block_mask is None or key.shape[0] != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask={'None' if block_mask is None else 'one'}, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    if block_mask is not None and block_mask.seq_lengths != (query.shape[2], key.shape[2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[2]} and kv_len={key.shape[2]}. "
            "Create it for these lengths."
        )


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key.T * scale), masked) @ value, computed in float32 (float64 of float64).

    query [batch, heads, queries, dim], key and value [batch, heads, keys, dim], of one dtype, that of the result. scale: 1 /
    sqrt(dim) unless given. enable_gqa: heads of queries share those of keys. Queries that see no key give zeros. return_lse: also the
    logarithms of the sums of exponentials, float32 [batch, heads, queries]; return_aux: an AuxOutput. kernel_options: accepted.
    ValueError and NotImplementedError for shapes and dtypes that do not fit.
    """
    _check(query, key, value, block_mask, enable_gqa)
    dtype = strata.float64 if query.dtype == strata.float64 else strata.float32
    groups = query.shape[1] // key.shape[1]
    q, k, v = query.to(dtype), key.to(dtype).repeat_interleave(groups, 1), value.to(dtype).repeat_interleave(groups, 1)
    scores = (q @ k.transpose(-1, -2)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    places = [strata.arange(n, device=query.device) for n in scores.shape]
    if score_mod is not None:
        scores = everywhere(score_mod, scores, places).to(dtype)
    if block_mask is not None:
        scores = scores.masked_fill(~everywhere(block_mask.mask_mod, None, places).expand(scores.shape), -math.inf)
    largest = scores.amax(-1, keepdim=True)
    unseen = largest == -math.inf
    weights = strata.exp(scores - largest.masked_fill(unseen, 0.0))
    total = weights.sum(-1, keepdim=True)
    out = ((weights / total.masked_fill(unseen, 1.0)) @ v).to(query.dtype)
    if not return_lse and return_aux is None:
        return out
    lse = (largest + total.log()).squeeze(-1).to(strata.float32)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse if return_aux.lse else None, largest.squeeze(-1).to(strata.float32) if return_aux.max_scores else None)
