"""How tensors travel between processes: as a descriptor of their shared memory, which the receiver maps."""

from __future__ import annotations

from multiprocessing import reduction

import strata
from strata import _C, Tensor, _shared_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["init_reductions", "rebuild_tensor", "reduce_storage", "reduce_tensor"]


def _received(handle: Any, size: int) -> _C.UntypedStorage:
    return _shared_memory.mapped(handle.detach() if handle is not None else None, size)


def rebuild_tensor(
    cls: type, handle: Any, size: int, dtype: strata.dtype, offset: int, shape: tuple, stride: tuple, requires_grad: bool,
    state: dict,
) -> Tensor:  # fmt: skip
    """The tensor over the memory whose descriptor came with it."""
    tensor = _C._tensor_over_storage(_received(handle, size), dtype, offset, shape, stride)
    if cls is strata.nn.Parameter:
        tensor = strata.nn.Parameter(tensor, requires_grad)
    else:
        tensor = tensor if cls is Tensor else tensor.as_subclass(cls)
        tensor = tensor.requires_grad_() if requires_grad else tensor
    tensor.__dict__.update(state)
    return tensor


def reduce_tensor(tensor: Tensor) -> tuple:
    """Moves the tensor into shared memory, where it is not, and gives what makes it again in another process.

    RuntimeError for a tensor with history. Tensors of other devices travel as their values.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    if tensor.device.type != "cpu":
        return tensor.__reduce_ex__(2)
    tensor.share_memory_()
    handle, size = _handle(tensor.untyped_storage())
    return rebuild_tensor, (
        type(tensor), handle, size, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
        tensor.requires_grad, dict(tensor.__dict__),
    )  # fmt: skip


def _handle(storage: _C.UntypedStorage) -> tuple[Any, int]:
    """What sends the descriptor of a shared storage, and its size. Storages without bytes have no descriptor."""
    mapping = _shared_memory.mapping_of(storage)
    return (None if mapping is None else reduction.DupFd(mapping.fd)), storage.nbytes()


def reduce_storage(storage: _C.UntypedStorage) -> tuple[Callable, tuple]:
    """What makes a storage again in another process: over the same memory where that is shared, else a copy."""
    if _shared_memory.mapping_of(storage) is not None:
        return _received, _handle(storage)
    return storage.__reduce_ex__(2)


def init_reductions() -> None:
    """Tells Python's multiprocessing how tensors, parameters and storages travel."""
    from strata.nn.parameter import Buffer, Parameter

    for cls in (Tensor, Parameter, Buffer):
        reduction.ForkingPickler.register(cls, reduce_tensor)
    reduction.ForkingPickler.register(_C.UntypedStorage, reduce_storage)
