"""Images at other sizes."""

from __future__ import annotations

from strata import Tensor

from .. import functional as F
from .module import Module


class Upsample(Module):
    """(N, C, spatial...) resampled to `size`, or to its sizes times `scale_factor`; see nn.functional.interpolate."""

    __module__ = "strata.nn.modules.upsampling"  # where PyTorch's files have it

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        several = isinstance(scale_factor, (list, tuple))
        self.scale_factor = tuple(map(float, scale_factor)) if several else scale_factor and float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        by = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{by}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample of images with mode="nearest"."""

    __module__ = "strata.nn.modules.upsampling"  # where PyTorch's files have it

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample of images with mode="bilinear" and align_corners=True."""

    __module__ = "strata.nn.modules.upsampling"  # where PyTorch's files have it

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
