"""strata.profiler under the name that PyTorch has for a part of it."""

from __future__ import annotations

from strata import _lazy
from strata import profiler as _profiler

__all__ = [*_profiler.__all__]
globals().update({name: getattr(_profiler, name) for name in __all__})
__getattr__, __dir__ = _lazy.of(globals(), otherwise=lambda name: vars(_profiler)[name])
