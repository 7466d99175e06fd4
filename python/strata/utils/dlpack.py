"""Tensors of other libraries without a copy, by the DLPack protocol."""

from __future__ import annotations

from strata import from_dlpack as from_dlpack
from strata import to_dlpack as to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
