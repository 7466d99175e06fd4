"""What passes are made of."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="fuser_utils matcher_utils")
