"""Tensors of PyTorch's that are Python over operators: those that have a shape and a device, and no memory."""

from __future__ import annotations

from .fake_tensor import DataDependentOutputException as DataDependentOutputException
from .fake_tensor import DynamicOutputShapeException as DynamicOutputShapeException
from .fake_tensor import FakeTensor as FakeTensor
from .fake_tensor import FakeTensorMode as FakeTensorMode
from .fake_tensor import UnsupportedFakeTensorException as UnsupportedFakeTensorException
