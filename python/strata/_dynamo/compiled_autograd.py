"""Blocks of PyTorch's compiled autograd. Backward runs here through the engine, whose nodes of compiled functions are compiled
as they are; a step that is compiled whole, `backward()` inside, is one graph without such a block."""

from __future__ import annotations

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["disable", "enable"]


@contextlib.contextmanager
def enable(compiler_fn: Any = None, dynamic: bool | None = True, ignore_active_disable_ctx: bool = True) -> Iterator[None]:
    """Accepted: gradients are the same, and no further graph is made of them. TypeError for a compiler that cannot be called."""
    if compiler_fn is not None and not callable(compiler_fn):
        raise TypeError(f"compiled_autograd.enable: expected a function that compiles, got {type(compiler_fn).__name__}")
    yield


@contextlib.contextmanager
def disable() -> Iterator[None]:
    """Accepted, as enable is."""
    yield
