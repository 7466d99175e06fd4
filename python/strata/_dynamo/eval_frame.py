"""The name by which programs tell a compiled module, to unwrap it."""

from strata._bytecode.module import OptimizedModule

__all__ = ["OptimizedModule"]
