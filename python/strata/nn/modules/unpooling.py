"""The partial inverse of max pooling."""

from __future__ import annotations

from strata import Tensor

from .. import functional as F
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .utils import Size


class _MaxUnpool(Module):
    rank = 0

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()

        def each(value: Size) -> tuple[int, ...]:
            return tuple(value) if isinstance(value, (list, tuple)) else (value,) * self.rank

        self.kernel_size = each(kernel_size)
        self.stride = each(kernel_size if stride is None else stride)
        self.padding = each(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.rank - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with the values of (N, C, L) at the indices that MaxPool1d(return_indices=True) gave."""

    __module__ = "strata.nn.modules.pooling"  # where PyTorch's files have it

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Zeros with the values of (N, C, H, W) at the indices that MaxPool2d(return_indices=True) gave."""

    __module__ = "strata.nn.modules.pooling"  # where PyTorch's files have it

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Zeros with the values of (N, C, D, H, W) at the indices that MaxPool3d(return_indices=True) gave."""

    __module__ = "strata.nn.modules.pooling"  # where PyTorch's files have it

    rank = 3
