"""How graphs are cut for backends, and passes run."""

from __future__ import annotations

from strata import _lazy

__getattr__, __dir__ = _lazy.of(globals(), parts="partitioner pass_base pass_manager")
