"""What symbolic functions of programs take from PyTorch's exporter to ONNX: their decorator, and the format's numbers of dtypes."""

from __future__ import annotations

import functools

from strata._missing import missing_function
from strata.onnx import _WAY_OUT
from strata.onnx import TensorProtoDataType as _Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

cast_pytorch_to_onnx = {
    "Byte": _Kind.UINT8, "Char": _Kind.INT8, "Double": _Kind.DOUBLE, "Float": _Kind.FLOAT, "Half": _Kind.FLOAT16, "Int": _Kind.INT32,
    "Long": _Kind.INT64, "Short": _Kind.INT16, "Bool": _Kind.BOOL, "ComplexFloat": _Kind.COMPLEX64,
    "ComplexDouble": _Kind.COMPLEX128, "BFloat16": _Kind.BFLOAT16, "Undefined": _Kind.UNDEFINED,
}  # fmt: skip


def parse_args(*arg_descriptors: str) -> Callable[[Callable], Callable]:
    """A decorator of symbolic functions, which an exporter calls: theirs raises NotImplementedError, as there is none."""

    def decorate(function: Callable) -> Callable:
        function._arg_descriptors = arg_descriptors
        return functools.wraps(function)(missing_function(function.__module__, function.__name__, _WAY_OUT))

    return decorate


def quantized_args(*args: Any, **kwargs: Any) -> Callable[[Callable], Callable]:
    """The same, for functions of quantised values."""
    return parse_args()


def __getattr__(name: str) -> Callable:
    """The exporter's own functions, which raise NotImplementedError."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return missing_function(__name__, name, _WAY_OUT)
