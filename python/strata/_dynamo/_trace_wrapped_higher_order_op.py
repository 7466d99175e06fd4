"""The block that programs put around vmap of functions that index by one place, as masks of attention do."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Inside of it `t[i]` takes tensors of no dim for indices, not for numbers. They always are indices here: it changes nothing."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: object) -> None:
        pass
