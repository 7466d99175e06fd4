"""Names for annotations, as PyTorch's programs import them."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Union

import strata
from strata import device as _device

_TensorOrTensors = Union["strata.Tensor", Sequence["strata.Tensor"]]
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _layout = strata.dtype, strata.layout
_size = Union[strata.Size, list[_int], tuple[_int, ...]]
Number = Union[_int, _float, _bool]
Device = Union[_device, str, _int, None]
DeviceLikeType = Union[_device, str, _int]
FileLike = Any
Storage = strata.UntypedStorage

__all__ = ["Device", "DeviceLikeType", "FileLike", "Number", "Storage"]
