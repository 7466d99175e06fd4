"""How graphs are cut for backends."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="partitioner")
