"""Functions composed of other functions of the module: windows, and positions in a shape. Loaded on first use."""

from __future__ import annotations

import math
import warnings

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from strata import Tensor

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "range",
    "unravel_index",
]

def _window(
    name: str, length: int, periodic: bool, values: Callable[[Tensor], Tensor], dtype: Any, device: Any, grad: bool
) -> Tensor:
    """`values` at 0 to 1, `length` points; periodic: the last of one point more is left out."""
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    dtype = strata.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length <= 1:
        made = strata.ones(length, dtype=dtype, device=device)
    else:
        steps = length if periodic else length - 1
        at = strata.arange(length, dtype=strata.float64, device=device) / steps
        made = values(at).to(dtype)
    return made.requires_grad_() if grad else made


def _cosines(*factors: float) -> Callable[[Tensor], Tensor]:
    """A sum of cosines of 0, 1, 2... periods with alternating signs."""

    def values(at: Tensor) -> Tensor:
        total = strata.full_like(at, factors[0])
        for k, factor in enumerate(factors[1:], 1):
            total = total + (-1) ** k * factor * strata.cos(2 * math.pi * k * at)
        return total

    return values


def bartlett_window(window_length: int, periodic: bool = True, *, dtype=None, device=None, requires_grad=False) -> Tensor:
    """A triangle from 0 to 1 and back, window_length points; periodic leaves out the last point of one more."""
    values = lambda at: 1 - (2 * at - 1).abs()  # noqa: E731
    return _window("bartlett_window", window_length, periodic, values, dtype, device, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype=None, device=None, requires_grad=False) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)."""
    return _window("blackman_window", window_length, periodic, _cosines(0.42, 0.5, 0.08), dtype, device, requires_grad)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype=None, device=None,
    requires_grad=False,
) -> Tensor:
    """alpha - beta cos(2 pi t)."""
    return _window("hamming_window", window_length, periodic, _cosines(alpha, beta), dtype, device, requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype=None, device=None, requires_grad=False) -> Tensor:
    """0.5 - 0.5 cos(2 pi t)."""
    return _window("hann_window", window_length, periodic, _cosines(0.5, 0.5), dtype, device, requires_grad)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype=None, device=None, requires_grad=False
) -> Tensor:
    """I0(beta sqrt(1 - (2 t - 1) ** 2)) / I0(beta). Source: Kaiser and Schafer, 1980."""

    def values(at: Tensor) -> Tensor:
        inside = (1 - (2 * at - 1) ** 2).clamp(min=0)
        return strata.i0(beta * inside.sqrt()) / strata.i0(strata.full_like(at, beta))

    return _window("kaiser_window", window_length, periodic, values, dtype, device, requires_grad)


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
