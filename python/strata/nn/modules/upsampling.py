"""Upsample and its kind under the name that PyTorch has for their file."""

from __future__ import annotations

from .resample import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
