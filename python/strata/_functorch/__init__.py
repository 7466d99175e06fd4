"""Names by which programs reach PyTorch's ahead-of-time autograd: graphs of forward and backward, for compilers of their own."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="aot_autograd compilers config partitioners")
