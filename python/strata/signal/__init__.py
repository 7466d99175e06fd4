"""Signal processing: the windows of strata.signal.windows."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
