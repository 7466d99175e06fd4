"""Passes that programs import from PyTorch's fx.experimental."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="const_fold optimization proxy_tensor symbolic_shapes")
