"""Export to ONNX: not provided. What programs register for one is kept; using an exporter's parts raises NotImplementedError."""

from __future__ import annotations

from enum import IntEnum

from strata import _lazy
from strata._missing import missing_class, missing_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_WAY_OUT = "save model.state_dict() with strata.save and export it from PyTorch"
export = missing_function(__name__, "export", _WAY_OUT)
ONNXProgram = missing_class(__name__, "ONNXProgram", _WAY_OUT)
# Numbers of the format, and of the older exporter's options.
TensorProtoDataType = IntEnum(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 BFLOAT16 "
    "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
    module=__name__,
)
TrainingMode = IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", start=0, module=__name__)
OperatorExportTypes = IntEnum("OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0, module=__name__)
_symbolics: dict[tuple[str, int], Callable] = {}


def is_in_onnx_export() -> bool:
    """False: nothing is being exported."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Keeps how an operator, "domain::name", is to be exported. ValueError for another form of name."""
    domain, _, name = symbolic_name.partition("::")
    if not name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name")
    _symbolics[f"{domain or 'aten'}::{name}", opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes it back, where it was registered."""
    _symbolics.pop((("aten" if symbolic_name.startswith("::") else "") + symbolic_name, opset_version), None)


_OPSETS = " ".join(f"symbolic_opset{version}" for version in range(7, 21))
__getattr__, __dir__ = _lazy.of(globals(), parts=f"operators symbolic_helper {_OPSETS}")
