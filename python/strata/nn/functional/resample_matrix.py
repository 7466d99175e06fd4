"""Resampling along one dimension as a matrix: filters that average what they leave out (antialiasing), and images of
bytes, whose weights are integers."""

from __future__ import annotations

import strata
from strata import Tensor


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor, a: float) -> Tensor:
    """Cubic convolution. Source: R. Keys, IEEE TASSP 29 (1981)."""
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return strata.where(x < 1, near, strata.where(x < 2, far, strata.zeros_like(x)))


def weight_matrix(
    inputs: int,
    outputs: int,
    scale: float | None,
    align_corners: bool,
    cubic: bool,
    antialias: bool,
    dtype: strata.dtype,
) -> Tensor:
    """(outputs, inputs): how much each input position adds to each output position; rows sum to 1."""
    if align_corners:
        ratio = (inputs - 1) / (outputs - 1) if outputs > 1 else 0.0
    else:
        ratio = 1.0 / scale if scale else inputs / outputs
    at = strata.arange(outputs, dtype=dtype).reshape(-1, 1)
    radius = 2 if cubic else 1
    if not antialias:
        at = at * ratio if align_corners else (at + 0.5) * ratio - 0.5
        if not cubic:
            at = at.clamp(min=0)
        first = at.floor().clamp(max=inputs - 1)
        part = (at - first).clamp(0, 1)
        taps = strata.arange(1 - radius, radius + 1, dtype=dtype)
        weights = _cubic(taps - part, -0.75) if cubic else _triangle(taps - part)
        index = (first + taps).long().clamp(0, inputs - 1)
        return strata.zeros(outputs, inputs, dtype=dtype).scatter_add(1, index, weights)
    # A filter as wide as the distance of the outputs, where that is more than one input.
    wide = max(ratio, 1.0)
    centre = (at + 0.5) * ratio
    reach = radius * wide
    places = strata.arange(inputs, dtype=dtype)
    first = (centre - reach + 0.5).trunc().clamp(min=0)
    last = (centre + reach + 0.5).trunc().clamp(max=inputs)
    x = (places - centre + 0.5) / wide
    weights = _cubic(x, -0.5) if cubic else _triangle(x)
    weights = strata.where((places >= first) & (places < last), weights, strata.zeros_like(weights))
    return weights / weights.sum(1, keepdim=True)


def apply_weights(input: Tensor, dim: int, weights: Tensor) -> Tensor:
    """The dimension `dim` resampled. Bytes take weights of 16 bits, and are rounded."""
    last = input.transpose(dim, -1)
    if input.dtype != strata.uint8:
        return (last @ weights.t().to(input.dtype)).transpose(dim, -1)
    largest = weights.max().item()
    bits = next(b for b in range(23) if b == 22 or int(0.5 + largest * 2 ** (b + 1)) >= 2**15)
    scaled = weights * 2**bits
    whole = strata.where(scaled < 0, (scaled - 0.5).trunc(), (scaled + 0.5).trunc()).long()
    total = last.long() @ whole.t() + (1 << bits >> 1)
    return (total >> bits).clamp(0, 255).to(strata.uint8).transpose(dim, -1)


def resampled(input: Tensor, sizes: list[int], scales: list, mode: str, align_corners: bool, antialias: bool) -> Tensor:
    """Images (N, C, H, W) at other sizes, first along their rows, then along their columns."""
    wide = strata.float64 if input.dtype in (strata.uint8, strata.float64) else strata.float32
    result = input.float() if input.dtype in (strata.float16, strata.bfloat16) else input
    for d in (1, 0):
        inputs, outputs = input.shape[2 + d], sizes[d]
        if inputs == outputs and input.dtype == strata.uint8:
            continue
        weights = weight_matrix(inputs, outputs, scales[d], align_corners, mode == "bicubic", antialias, wide)
        result = apply_weights(result, 2 + d, weights)
    return result.contiguous().to(input.dtype)
