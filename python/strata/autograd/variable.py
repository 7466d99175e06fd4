"""Variable under the name that PyTorch has for its file."""

from __future__ import annotations

from strata.autograd import Variable as Variable

__all__ = ["Variable"]
