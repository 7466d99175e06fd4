"""Plain safetensors files: named tensors and a dict of strings, equal byte for byte to those of the reference library.

The names and arguments are those of `safetensors.torch`. Format: https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import os

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from strata import Tensor

__all__ = ["load", "load_file", "load_metadata", "save", "save_file"]


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Writes the tensors, atomically: an error leaves what was there before.

    Tensors that are not contiguous are written as contiguous ones. RuntimeError where two share memory (the format would
    hold it twice; save one of them, or use strata.save), TypeError for other things than str to Tensor and for
    complex128, which the format lacks.
    """
    _C._save_safetensors(tensors, os.fsdecode(filename), metadata)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The same as bytes."""
    pieces: list[bytes] = []
    _C._save_safetensors(tensors, pieces.append, metadata)
    return b"".join(pieces)


def load_file(filename: str | os.PathLike, device: str | int | _C.device = "cpu", *, mmap: bool = False) -> dict[str, Tensor]:
    """The tensors of a file by name. RuntimeError for damaged files, FileNotFoundError where there is none.

    mmap: the tensors lie in the mapped file, of which only what is used gets read; it must not be cut while they live.
    """
    return _C._load_safetensors(os.fsdecode(filename), _C.device(device), mmap)[0]


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of a file's bytes by name."""
    return _C._load_safetensors(bytes(data), None, False)[0]


def load_metadata(filename: str | os.PathLike) -> dict[str, str] | None:
    """The strings that a file was saved with, or None."""
    return _C._load_safetensors(os.fsdecode(filename), None, True)[1]
