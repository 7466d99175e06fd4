"""vmap under an older name of PyTorch's."""

from __future__ import annotations

from strata._vmap import vmap

__all__ = ["vmap"]

_vmap = vmap
