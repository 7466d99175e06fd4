"""Two operators under the name that PyTorch's exporter to ONNX has for them."""

from strata import _reshape_from_tensor as reshape_from_tensor_shape
from strata import _shape_as_tensor as shape_as_tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]
