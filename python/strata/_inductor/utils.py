"""Helpers that programs import from PyTorch's generator of kernels."""

from __future__ import annotations

import contextlib

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["fresh_cache", "fresh_inductor_cache"]


@contextlib.contextmanager
def fresh_cache(cache_entries: dict[str, Any] | None = None, dir: str | None = None, delete: bool = True) -> Iterator[None]:  # noqa: A002
    """Inside the block what was compiled before is captured anew. Kernels on disk stay: they are known by their text, so that
    the same text gives the same kernel; strata.cache.clear() removes them."""
    strata.compiler.reset()
    yield
    strata.compiler.reset()


fresh_inductor_cache = fresh_cache
