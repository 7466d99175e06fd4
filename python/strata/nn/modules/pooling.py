"""Pooling layers over (N, C, spatial...) or (C, spatial...)."""

from __future__ import annotations

from strata import Tensor, _lazy

from .. import functional as F
from .module import Module
from .utils import _ntuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .utils import Size


class _MaxPoolNd(Module):
    _function = ""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, self._function)
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of the last dimension; return_indices adds where each stands."""

    _function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """Maximum over windows of the last two dimensions; return_indices adds where each stands."""

    _function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of the last three dimensions; return_indices adds where each stands."""

    _function = "max_pool3d"


class AvgPool1d(Module):
    """Mean over windows of the last dimension; count_include_pad: padding counts as elements."""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        single = _ntuple(1, "single")
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    _function = ""

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, self._function)
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPoolNd):
    """Mean over windows of the last two dimensions; divisor_override replaces the count."""

    _function = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """Mean over windows of the last three dimensions; divisor_override replaces the count."""

    _function = "avg_pool3d"


class _LPPoolNd(Module):
    _function = ""

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, self._function)
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """p-norm of windows of the last dimension, p = norm_type."""

    _function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """p-norm of windows of the last two dimensions, p = norm_type."""

    _function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """p-norm of windows of the last three dimensions, p = norm_type."""

    _function = "lp_pool3d"


class _AdaptiveAvgPoolNd(Module):
    _function = ""

    def __init__(self, output_size: Size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the last dimension becomes output_size."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the plane becomes output_size; None keeps a dimension."""

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the volume becomes output_size; None keeps a dimension."""

    _function = "adaptive_avg_pool3d"


class _AdaptiveMaxPoolNd(Module):
    _function = ""

    def __init__(self, output_size: Size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, self._function)
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the last dimension becomes output_size."""

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the plane becomes output_size; None keeps a dimension."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the volume becomes output_size; None keeps a dimension."""

    _function = "adaptive_max_pool3d"


class _FractionalMaxPoolNd(Module):
    _rank = 0

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        each = _ntuple(self._rank, "each")
        name = type(self).__name__
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self._rank}d")
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum over output_size windows (or output_ratio times the input's size) of the last two dimensions, which begin
    at random places (Graham, 2014); return_indices adds where each maximum stands."""

    _rank = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maximum over output_size windows (or output_ratio times the input's size) of the last three dimensions, which
    begin at random places (Graham, 2014); return_indices adds where each maximum stands."""

    _rank = 3

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".unpooling": "MaxUnpool1d MaxUnpool2d MaxUnpool3d"})
