"""strata.fft: the operators of the table whose names begin with fft_."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.operators(globals(), {})
