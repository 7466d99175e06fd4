"""The name by which programs tell a compiled module, to unwrap it."""

from __future__ import annotations

from strata._bytecode.module import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """True: strata.compile is there wherever this package is."""
    return True
