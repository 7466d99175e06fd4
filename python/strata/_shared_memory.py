"""Memory of tensors that several processes see: files without a name, mapped by each.

A mapping lives as long as a storage over it; with the last one in the last process the memory is gone, however that
process ended.
"""

from __future__ import annotations

import mmap
import os
import weakref

import strata
from strata import _C, Tensor

TYPE_CHECKING = False


class _Mapping(mmap.mmap):
    """A mapped file that knows its descriptor, and closes it in the end."""

    fd = -1

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


# Mappings by the address of their memory.
_mappings: weakref.WeakValueDictionary[int, _Mapping] = weakref.WeakValueDictionary()


def mapping_of(storage: _C.UntypedStorage) -> _Mapping | None:
    """The mapping that a storage is, or None."""
    return _mappings.get(storage.data_ptr()) if storage.nbytes() else None


def mapped(fd: int | None, size: int) -> _C.UntypedStorage:
    """A storage over the file of that descriptor, which it owns from now on."""
    if fd is None:
        return strata.empty(0, dtype=strata.uint8).untyped_storage()
    mapping = _Mapping(fd, size)
    mapping.fd = fd
    storage = strata.frombuffer(mapping, dtype=strata.uint8).untyped_storage()
    _mappings[storage.data_ptr()] = mapping
    return storage


def is_shared(tensor: Tensor) -> bool:
    """Whether other processes can see the tensor's memory."""
    return not tensor.is_meta and tensor.device.type == "cpu" and mapping_of(tensor.untyped_storage()) is not None


def share(tensor: Tensor) -> Tensor:
    """The tensor itself, whose memory can be seen by processes that get it, with all tensors over the same memory; one of another
    device stays as it is. RuntimeError for a meta tensor.

    Where another library looks at the memory (numpy(), DLPack), the tensor moves alone.
    """
    if tensor.is_meta:
        raise RuntimeError("share_memory_: expected a tensor with memory, got one on meta; make it anew on a device")
    if tensor.device.type != "cpu":
        return tensor
    old = tensor.untyped_storage()
    if not old.nbytes() or mapping_of(old) is not None:
        return tensor
    fd = os.memfd_create("strata", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, old.nbytes())
        new = mapped(fd, old.nbytes())
    except BaseException:
        os.close(fd)
        raise
    size = (old.nbytes(),)
    with strata.no_grad():
        bytes_of = _C._tensor_over_storage
        bytes_of(new, strata.uint8, 0, size, (1,)).copy_(bytes_of(old, strata.uint8, 0, size, (1,)))
        if not _C._exchange_memory(old, new):
            tensor.data = bytes_of(new, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    return tensor
