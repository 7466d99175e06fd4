"""What files name to make tensors again: PyTorch's functions of the same names, over Strata's storages."""

from __future__ import annotations

import strata
from strata import _C, Tensor
from strata.storage import TypedStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _over(storage: Any, dtype: strata.dtype, offset: int, size: tuple, stride: tuple) -> Tensor:
    untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
    if storage.device.type == "meta":  # programs make one of no bytes, to know shapes before they read a file
        return strata.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return _C._tensor_over_storage(untyped, dtype, offset, tuple(size), tuple(stride))


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    """A tensor over a storage that knows its dtype. RuntimeError where it would reach beyond it."""
    return _over(storage, storage.dtype, storage_offset, size, stride)


def _resolved(tensor: Tensor, marks: Any) -> Tensor:
    marks = marks or {}
    tensor = tensor.conj() if marks.get("conj") else tensor
    return tensor.neg() if marks.get("neg") else tensor


def _rebuild_tensor_v2(
    storage: TypedStorage, storage_offset: int, size: tuple, stride: tuple, requires_grad: bool, backward_hooks: Any,
    metadata: dict | None = None,
) -> Tensor:  # fmt: skip
    """The same with requires_grad; hooks are not kept. A lazy conjugate or negative is computed, in memory of its own."""
    tensor = _resolved(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_tensor_v3(
    storage: Any, storage_offset: int, size: tuple, stride: tuple, requires_grad: bool, backward_hooks: Any,
    dtype: strata.dtype, metadata: dict | None = None,
) -> Tensor:  # fmt: skip
    """The same over an untyped storage."""
    tensor = _resolved(_over(storage, dtype, storage_offset, size, stride), metadata)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """A Parameter over the tensor's memory."""
    return strata.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Tensor:
    """A Parameter with attributes."""
    parameter = strata.nn.Parameter(data, requires_grad)
    _set_state(parameter, state)
    return parameter


def _set_state(obj: Any, state: Any) -> None:
    """Attributes, from a dict or from (dict, dict of slots)."""
    if isinstance(state, tuple) and len(state) == 2:
        state = {**(state[0] or {}), **(state[1] or {})}
    for name, value in (state or {}).items():
        setattr(obj, name, value)


def _rebuild_meta_tensor_no_storage(dtype: strata.dtype, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """A tensor that has a shape and no memory."""
    return strata.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: strata.dtype, device: Any, requires_grad: bool) -> Tensor:
    """A tensor with the values of an array, on a device."""
    tensor = strata.from_numpy(data).to(device=device, dtype=dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: strata.dtype, device: Any, requires_grad: bool) -> Tensor:
    """A tensor with the values of another, on a device."""
    tensor = data.to(device=device, dtype=dtype)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> Tensor:
    """A sparse tensor of its parts. RuntimeError where they do not fit, ValueError for other layouts."""
    if layout is strata.sparse_coo:
        indices, values, size, *coalesced = data
        return strata.sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))
    if layout is strata.sparse_csr:
        return strata.sparse_csr_tensor(*data)
    raise ValueError(f"cannot read a tensor of the layout {layout}; convert it to sparse_coo before saving")


def _element_size(dtype: strata.dtype) -> int:
    """Bytes of an element. RuntimeError for what is no dtype."""
    if not isinstance(dtype, strata.dtype):
        raise RuntimeError(f"expected strata.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device, its name or its number; -1 for the CPU, where that is allowed. optional: of a device without a number,
    and of None, the current one of the accelerator. ValueError for the CPU where it is not allowed, and for what has no number."""
    if isinstance(device, int):
        return device
    given = strata.device(device) if isinstance(device, str) else device
    if isinstance(given, strata.device) and given.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {given}")
        return -1
    if isinstance(given, strata.device) and given.index is not None:
        return given.index
    if not optional:
        raise ValueError(f"Expected a strata.device with a specified index or an integer, but got:{given}")
    return strata.accelerator.current_device_index()


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements of tensors of one dtype, as one of one dim."""
    return tensors[0].contiguous().view(-1) if len(tensors) == 1 else strata.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """The parts of what _flatten_dense_tensors gave, with the shapes of `tensors`."""
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors, strict=True))
