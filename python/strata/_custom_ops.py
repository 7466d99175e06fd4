"""PyTorch's older names of strata.library."""

from __future__ import annotations

from strata._missing import missing_function

get_ctx = missing_function(
    __name__, "get_ctx", "sizes are ints here; a fake kernel whose result's size depends on values must give a size that holds them"
)
