"""strata.fft: the operators of the table whose names begin with fft_. `norm` scales by 1/n on the way back ("backward", the
default), forth ("forward") or by 1/sqrt(n) both ways ("ortho"); `n` and `s` cut a dim or fill it with zeros first."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.operators(globals(), {})
