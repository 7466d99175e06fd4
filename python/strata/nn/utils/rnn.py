"""Sequences of different lengths as one tensor: padded, or packed so that nothing is computed for padding.

A packed batch holds the sequences from longest to shortest, step by step: first every sequence's first element, then
every second element of those that have one, and so on; batch_sizes counts the sequences that are still running.
"""

from __future__ import annotations

from collections import namedtuple

import strata
from strata import Tensor

from .. import functional as F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_Parts = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Parts):
    """A packed batch; pack_padded_sequence and pack_sequence make it, recurrent modules take and give it.

    data: (total length, *). batch_sizes: int64 on the CPU, one number a step. sorted_indices: where each sequence of
    the packed order stood in the batch, None where the batch was in order; unsorted_indices: the way back.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:  # (data, batch_sizes) as one pair, which older programs pass
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU, but it is on {batch_sizes.device}: pass batch_sizes.cpu(), or "
                "use pack_padded_sequence, which makes it"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The batch with data as Tensor.to gives it; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (None if i is None else i.to(data.device) for i in self[2:])
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def double(self) -> PackedSequence:
        return self.to(strata.float64)

    def float(self) -> PackedSequence:
        return self.to(strata.float32)

    def half(self) -> PackedSequence:
        return self.to(strata.float16)

    def long(self) -> PackedSequence:
        return self.to(strata.int64)

    def int(self) -> PackedSequence:
        return self.to(strata.int32)

    def short(self) -> PackedSequence:
        return self.to(strata.int16)

    def char(self) -> PackedSequence:
        return self.to(strata.int8)

    def byte(self) -> PackedSequence:
        return self.to(strata.uint8)

    def pin_memory(self) -> PackedSequence:
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    def __getattr__(self, name: str) -> Any:
        """Whether its data lies on a device of that name, as a tensor says it."""
        if name.startswith("is_"):
            return getattr(self.data, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one; None for None."""
    if permutation is None:
        return None
    places = strata.arange(permutation.numel(), device=permutation.device)
    return strata.empty_like(permutation).scatter_(0, permutation, places)


def _checked_lengths(input: Tensor, lengths: Tensor, batch_first: bool, enforce_sorted: bool) -> None:
    if lengths.dim() != 1:
        raise RuntimeError(
            f"`lengths` argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} tensor"
        )
    if input.dim() < 2 or input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    batch, longest = input.size(0 if batch_first else 1), input.size(1 if batch_first else 0)
    if lengths.numel() != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} (batch_size={batch})"
        )
    values = lengths.tolist()
    if enforce_sorted and any(a < b for a, b in zip(values, values[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement."
        )
    if min(values) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if max(values) > longest:
        raise RuntimeError(f"Expected the lengths to be at most {longest}, the padded length, but got {max(values)}")


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | list[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences (length, N, *), or (N, length, *) where batch_first, of the given lengths.

    enforce_sorted: lengths must descend; else they are sorted, and the way back is kept. RuntimeError for lengths that
    do not fit.
    """
    if not isinstance(lengths, Tensor):
        lengths = strata.tensor(lengths, dtype=strata.int64)
    lengths = lengths.to("cpu", strata.int64)
    order = None
    if not enforce_sorted:
        lengths, order = strata.sort(lengths, descending=True)
        order = order.to(input.device)
        if input.dim() > 1 and order.numel() == input.size(0 if batch_first else 1):
            input = input.index_select(0 if batch_first else 1, order)
    _checked_lengths(input, lengths, batch_first, enforce_sorted)
    steps = input.transpose(0, 1) if batch_first else input
    sizes = (lengths.unsqueeze(0) > strata.arange(int(lengths[0])).unsqueeze(1)).sum(1)
    data = strata.cat([step[:n] for step, n in zip(steps.unbind(0), sizes.tolist(), strict=False)])
    return PackedSequence(data, sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded sequences, lengths): undoes pack_padded_sequence.

    total_length: the padded length, at least the longest; ValueError otherwise.
    """
    sizes = sequence.batch_sizes.tolist()
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    rows, rest = sizes[0], sequence.data.shape[1:]
    steps = []
    for step in sequence.data.split(sizes):
        missing = rows - step.size(0)
        steps.append(F.pad(step, [0, 0] * len(rest) + [0, missing], value=padding_value) if missing else step)
    if longest > len(sizes):
        steps += [sequence.data.new_full((rows, *rest), padding_value)] * (longest - len(sizes))
    padded = strata.stack(steps, 1 if batch_first else 0)
    lengths = (sequence.batch_sizes.unsqueeze(0) > strata.arange(rows).unsqueeze(1)).sum(1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (length, *) of any lengths; enforce_sorted: from longest to shortest."""
    lengths = strata.tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch: undoes pack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(
    sequences: Iterable[Tensor] | Tensor,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, *) as (longest, N, *), or (N, longest, *) where batch_first, filled up with padding_value, of the first
    one's dtype.

    RuntimeError for no sequences, sequences whose other sizes differ, or another padding_side than "left" and "right".
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    first = sequences[0]
    if any(sequence.shape[1:] != first.shape[1:] for sequence in sequences):
        raise RuntimeError(
            "pad_sequence: the sequences must have the same sizes after the first dimension, "
            f"but got {[tuple(sequence.shape) for sequence in sequences]}"
        )
    longest = max(sequence.size(0) for sequence in sequences)
    untouched = [0, 0] * (first.dim() - 1)
    rows = []
    for sequence in sequences:
        sequence = sequence.to(first.dtype)  # noqa: PLW2901
        missing = longest - sequence.size(0)
        ends = [0, missing] if padding_side == "right" else [missing, 0]
        rows.append(F.pad(sequence, untouched + ends, value=padding_value) if missing else sequence)
    return strata.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of given lengths in a tensor that pad_sequence made (padded on the right)."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length].clone() for row, length in zip(rows.unbind(0), lengths.tolist(), strict=True)]
