"""Images at other sizes."""

from __future__ import annotations

import math
import operator

import strata
from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Modes with the numbers of spatial dimensions that they take.
_RANKS = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
_OPERATORS = {
    "nearest": {1: _ops.upsample_nearest1d, 2: _ops.upsample_nearest2d, 3: _ops.upsample_nearest3d},
    "nearest-exact": {
        1: _ops._upsample_nearest_exact1d,
        2: _ops._upsample_nearest_exact2d,
        3: _ops._upsample_nearest_exact3d,
    },
    "linear": {1: _ops.upsample_linear1d},
    "bilinear": {2: _ops.upsample_bilinear2d},
    "bicubic": {2: _ops.upsample_bicubic2d},
    "trilinear": {3: _ops.upsample_trilinear3d},
}
_NAMES = {1: "linear", 2: "bilinear or bicubic", 3: "trilinear"}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """(N, C, spatial...) resampled to `size`, or to its sizes times `scale_factor`.

    mode: "nearest", "nearest-exact", "linear" (1 spatial dimension), "bilinear", "bicubic" (2), "trilinear" (3) or
    "area". align_corners puts the first and last positions of input and output on each other. antialias ("bilinear" and
    "bicubic") widens the filter where the output is smaller, so that every input position counts.
    """
    if has_torch_function_unary(input):
        return overridden(interpolate, (input,), locals())
    _check_mode(input, mode, align_corners)
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    rank = input.dim() - 2
    sizes, scales = _geometry(input, rank, size, scale_factor, recompute_scale_factor)
    if antialias or mode.endswith("linear") or (mode == "nearest" and rank == 2):  # an axis that keeps its size keeps its values
        scales = [None if n == kept else scale for n, kept, scale in zip(sizes, input.shape[2:], scales, strict=True)]
    if mode == "area":
        return (_ops.adaptive_avg_pool1d, _ops.adaptive_avg_pool2d, _ops.adaptive_avg_pool3d)[rank - 1](input, sizes)
    if any(n <= 0 for n in sizes) or 0 in input.shape[1:]:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(input.shape[2:])} and output {sizes}"
        )
    of_bytes = input.dtype == strata.uint8 and mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    if not (input.is_floating_point() or of_bytes):
        raise NotImplementedError(
            f"\"upsample_{mode}{rank}d\" not implemented for '{input.dtype}'; convert the input with .float() first"
        )
    if mode.startswith("nearest"):
        return _OPERATORS[mode][rank](input, sizes, *scales)
    if antialias:
        smooth = _ops._upsample_bilinear2d_aa if mode == "bilinear" else _ops._upsample_bicubic2d_aa
        return smooth(input, sizes, bool(align_corners), *scales)
    if of_bytes:
        return strata.ops.strata._upsample_bytes(input, sizes, bool(align_corners), *scales, mode == "bicubic")
    return _OPERATORS[mode][rank](input, sizes, bool(align_corners), *scales)


def _check_mode(input: Tensor, mode: str, align_corners: bool | None) -> None:
    if mode not in _RANKS:
        raise NotImplementedError(f"interpolate: mode {mode!r} is not known; expected one of {', '.join(_RANKS)}")
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    rank = input.dim() - 2
    if rank not in _RANKS[mode]:
        if rank not in _NAMES:
            raise NotImplementedError(
                f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: {', '.join(_RANKS)}"
            )
        raise NotImplementedError(
            f"Got {rank + 2}D input, but {mode} mode takes another number of dims; use {_NAMES[rank]}"
        )


def _listed(value, rank: int, name: str) -> list:
    if not isinstance(value, (list, tuple)):
        return [value] * rank
    if len(value) != rank:
        raise ValueError(
            f"Input and output must have the same number of spatial dimensions, but got input with {rank} spatial "
            f"dimensions and {name} of {list(value)}"
        )
    return list(value)


def _whole(size) -> int:
    try:
        if not isinstance(size, bool):
            return operator.index(size)
    except TypeError:
        pass
    raise TypeError(f"interpolate: expected size to be an int, or one a spatial dim, got {size!r}")


def _geometry(input: Tensor, rank: int, size, scale_factor, recompute: bool | None) -> tuple[list[int], list]:
    """Output sizes, and per dimension the scale that positions follow, None for the ratio of the sizes."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [_whole(n) for n in _listed(size, rank, "output size")], [None] * rank
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = _listed(scale_factor, rank, "scale_factor")
    if any(isinstance(s, str) for s in scales):
        raise TypeError(f"interpolate: expected scale_factor to be a number, or one a spatial dim, got {scale_factor!r}")
    scales = [float(s) for s in scales]
    sizes = [math.floor(float(n * s)) for n, s in zip(input.shape[2:], scales, strict=True)]
    return sizes, [None] * rank if recompute else scales


def upsample(
    input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode="nearest"."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode="bilinear" and align_corners=True."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
