"""What strata.compile raises, by PyTorch's names; those that nothing raises here are there for `except` clauses."""

from __future__ import annotations

from strata._bytecode.reasons import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    InternalError,
    RecompileError,
    TorchDynamoException,
    Unsupported,
)

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "RecompileError", "RecompileLimitExceeded",
    "TorchDynamoException", "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip

InternalTorchDynamoError = InternalError


class RecompileLimitExceeded(Unsupported):
    """Not raised: beyond the limit of recompiles a function runs as it is, or raises FailOnRecompileLimitHit."""


class TorchRuntimeError(TorchDynamoException):
    """Not raised: errors of operators come through as they are."""


class UserError(Unsupported):
    """Not raised: wrong uses raise what they raise without a compiler."""


for _kind in (BackendCompilerFailed, FailOnRecompileLimitHit, InternalError, RecompileError, TorchDynamoException, Unsupported):
    _kind.__module__ = __name__
