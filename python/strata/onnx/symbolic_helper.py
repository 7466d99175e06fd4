"""What symbolic functions of programs take from PyTorch's exporter to ONNX: their decorator, and the format's numbers of dtypes."""

from __future__ import annotations

import functools

from strata import _lazy
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


def _of_exporter(name: str) -> Callable:
    """The exporter's own functions, which raise NotImplementedError."""
    if name not in _FUNCTIONS.split():
        raise KeyError(name)
    return missing_function(__name__, name, _WAY_OUT)


_FUNCTIONS = (
    "_argmin_argmax_helper _avgpool_helper _block_list_in_opset _convert_padding_node _expand_helper _get_const _get_dim_for_cross "
    "_get_tensor_dim_size _get_tensor_rank _get_tensor_sizes _if_scalar_type_as _interpolate_helper _is_bool _is_constant _is_fp "
    "_is_none _is_packed_list _is_tensor _is_value _maybe_get_const _maybe_get_scalar _node_get _onnx_unsupported _reducesum_helper "
    "_reshape_helper _scalar _select_helper _set_dtype _set_opset_version _size_helper _slice_helper _sort_helper _squeeze_helper "
    "_topk_helper _try_get_scalar_type _type_promote_from_values _unimplemented _unpack_list _unsqueeze_helper args_have_same_dtype "
    "check_training_mode dequantize_helper is_caffe2_aten_fallback is_complex_value quantize_helper requantize_bias_helper"
)
__getattr__, __dir__ = _lazy.of(globals(), otherwise=_of_exporter)
