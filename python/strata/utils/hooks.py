"""The handle of a registered hook, under PyTorch's name."""

from __future__ import annotations

from strata.nn.hooks import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle"]
