"""Convolution layers, forward and transposed, in one to three dimensions.

Inputs are (N, C, spatial...) or (C, spatial...). padding "same" pads by dilation * (kernel - 1) in all, the odd element
at the end; "valid" pads nothing.
"""

from __future__ import annotations

import math

import strata
from strata import Tensor, _lazy

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .utils import Size

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Parameters and their checks; `_rank` is the number of spatial dimensions, `_function` what forward calls."""

    _rank = 0
    _function = ""
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size,
        padding: Size | str,
        dilation: Size,
        output_padding: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        sized = _ntuple(self._rank, "sized")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = sized(kernel_size)
        self.stride = sized(stride)
        self.dilation = sized(dilation)
        self.transposed = self._transposed
        self.output_padding = sized(output_padding)
        self.groups = groups
        self.padding = padding if isinstance(padding, str) else sized(padding)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts()
        # A transposed convolution's weight is that of the convolution it inverts.
        shape = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (shape[0], shape[1] // groups, *self.kernel_size)
        self.weight = Parameter(strata.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(strata.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pad_amounts(self) -> tuple[int, ...]:
        """Padding as pad() takes it: before and after, from the last dimension to the first."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        if self.padding == "valid":
            return (0, 0) * self._rank
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return tuple(n for total in reversed(totals) for n in (total // 2, total - total // 2))

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(fan_in), fan_in being the elements that one output sums."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in != 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _ForwardConv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._rank
        elif isinstance(padding, str):
            amounts = self._reversed_padding_repeated_twice
            padding = amounts[-2::-2]
            if padding != amounts[::-2]:  # the operator pads both ends alike
                input = F.pad(input, amounts)
                padding = (0,) * self._rank
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ForwardConv):
    """Convolution of (N, C, L). ValueError for groups that do not divide the channels, or a padding word unknown."""

    _rank = 1
    _function = "conv1d"


class Conv2d(_ForwardConv):
    """Convolution of (N, C, H, W). ValueError for groups that do not divide the channels, or a padding word unknown."""

    _rank = 2
    _function = "conv2d"


class Conv3d(_ForwardConv):
    """Convolution of (N, C, D, H, W). Errors as for Conv2d."""

    _rank = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> tuple[int, ...]:
        """What to add to the smallest output so that it becomes output_size. ValueError where none does."""
        if output_size is None:
            return self.output_padding
        rank = self._rank
        if len(output_size) == input.dim():
            output_size = output_size[-rank:]
        if len(output_size) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.dim()}D input, output_size must have {rank} or {input.dim()} "
                f"elements (got {len(output_size)})"
            )
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[-rank:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        largest = [n + s - 1 for n, s in zip(smallest, self.stride, strict=True)]
        if any(not a <= n <= b for n, a, b in zip(output_size, smallest, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {list(input.shape[-rank:])})"
            )
        return tuple(n - a for n, a in zip(output_size, smallest, strict=True))

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """output_size chooses among the sizes that a stride leaves open."""
        return getattr(F, self._function)(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L)."""

    _rank = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W)."""

    _rank = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W)."""

    _rank = 3
    _function = "conv_transpose3d"

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".lazy": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"})
