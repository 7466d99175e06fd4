"""Padding layers: one number for all sides, or two per dimension from the last to the first."""

from __future__ import annotations

from strata import Tensor

from .. import functional as F
from .module import Module
from .utils import _ntuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .utils import Size


class _Pad(Module):
    """`_rank` spatial dimensions, padded in `_mode`."""

    _rank = 0
    _mode = "constant"

    def __init__(self, padding: Size) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._rank, "padding")(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Size, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """`value` at both ends of the last dimension."""

    _rank = 1


class ConstantPad2d(_ConstantPad):
    """`value` around the last two dimensions."""

    _rank = 2


class ConstantPad3d(_ConstantPad):
    """`value` around the last three dimensions."""

    _rank = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros at both ends of the last dimension."""

    def __init__(self, padding: Size) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two dimensions."""

    def __init__(self, padding: Size) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three dimensions."""

    def __init__(self, padding: Size) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """The last dimension mirrored at its end elements."""

    _rank = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions mirrored at their end elements."""

    _rank = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three dimensions mirrored at their end elements."""

    _rank = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last dimension's end elements repeated."""

    _rank = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last two dimensions' end elements repeated."""

    _rank = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last three dimensions' end elements repeated."""

    _rank = 3
    _mode = "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._rank + 1, self._rank + 2):
            raise ValueError(f"expected {self._rank + 1}D or {self._rank + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """The last dimension continued from its other end."""

    _rank = 1


class CircularPad2d(_CircularPad):
    """The last two dimensions continued from their other ends."""

    _rank = 2


class CircularPad3d(_CircularPad):
    """The last three dimensions continued from their other ends."""

    _rank = 3
