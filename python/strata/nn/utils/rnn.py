"""Sequences of different lengths as one tensor."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import functional as F
from .._missing import missing_class, missing_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WAY_OUT = "pass the padded tensor, and leave the padded steps out of what you use"
PackedSequence = missing_class(__name__, "PackedSequence", _WAY_OUT)
pack_padded_sequence = missing_function(__name__, "pack_padded_sequence", _WAY_OUT)
pack_sequence = missing_function(__name__, "pack_sequence", _WAY_OUT)
pad_packed_sequence = missing_function(__name__, "pad_packed_sequence", _WAY_OUT)


def pad_sequence(
    sequences: Iterable[Tensor] | Tensor,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, *) as (longest, N, *), or (N, longest, *) where batch_first, filled up with padding_value.

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
        missing = longest - sequence.size(0)
        ends = [0, missing] if padding_side == "right" else [missing, 0]
        rows.append(F.pad(sequence, untouched + ends, value=padding_value) if missing else sequence)
    return strata.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of given lengths in a tensor that pad_sequence made (padded on the right)."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths.tolist(), strict=True)]
