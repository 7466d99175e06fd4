"""Functions composed of other functions of the module: positions in a shape, and ranges. Loaded on first use."""

from __future__ import annotations

import math
import warnings

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from strata import Tensor

__all__ = ["range", "unravel_index"]


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of that shape of elements counted in row-major order.

    TypeError for indices that are no integers, ValueError for those outside of the shape.
    """
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == strata.bool:
        raise TypeError(f"expected 'indices' to be integer tensor, but got {indices.dtype}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(size).__name__}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    count = math.prod(shape)
    indices = indices.to(strata.int64)
    if indices.numel() and ((indices < 0) | (indices >= count)).any():
        raise ValueError(f"'indices' must be between 0 and {count - 1}, the positions of shape {shape}")
    found = []
    for size in reversed(shape):
        found.append(indices % size if size else indices)
        indices = indices // size if size else indices
    return tuple(reversed(found))


builtin_range = range


def range(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Tensor:  # noqa: A001
    """start, start + step, ... up to and with end. Deprecated: arange leaves `end` out, as Python does."""
    warnings.warn(
        "range is deprecated: its end belongs to it, unlike Python's. Use arange, which produces values in [start, end)",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    count = math.floor((end - start) / step) + 1
    if step == 0 or count < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: {start}, {end}, {step}")
    options.setdefault("dtype", strata.get_default_dtype())
    return (strata.arange(count, dtype=strata.float64) * step + start).to(**options)
