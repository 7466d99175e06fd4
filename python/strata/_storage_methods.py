"""What an UntypedStorage can do beside telling its memory: it is a sequence of bytes, is copied, filled and moved, and read as
numbers of a dtype. The class asks for this module when the first of these is used (bind/tensor/storage.cpp)."""

from __future__ import annotations

import strata
from strata import _C, _device_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from strata import Tensor

Storage = _C.UntypedStorage


def _bytes(s: Storage) -> Tensor:
    return _C._tensor_over_storage(s, strata.uint8, 0, (s.nbytes(),), (1,))


def _place(s: Storage, index: Any) -> Any:
    """A slice of step 1 as it is, or the number of a byte."""
    if isinstance(index, slice):
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        return index
    if not hasattr(type(index), "__index__"):
        raise TypeError(f"can't index a strata.UntypedStorage with {type(index).__name__}")
    at, size = index.__index__(), s.nbytes()
    if not -size <= at < size:
        raise IndexError(f"index {at} out of range for storage of size {size}")
    return at


def getitem(s: Storage, index: Any) -> Any:
    """A byte as an int, or a storage over some of the bytes (of another device: a copy of them)."""
    place = _place(s, index)
    if not isinstance(place, slice):
        return int(_bytes(s)[place])
    if s.device.type != "cpu" or not s.nbytes():
        return _bytes(s)[place].clone().untyped_storage()
    return strata.frombuffer(memoryview(s)[place], dtype=strata.uint8).untyped_storage() if len(range(s.nbytes())[place]) else Storage(0)


def setitem(s: Storage, index: Any, value: int) -> None:
    """Writes a byte, or one number to several."""
    _bytes(s)[_place(s, index)] = value & 255


def iterate(s: Storage) -> Iterator[int]:
    return iter(tolist(s))


def shown(s: Storage) -> str:
    head = "..." if s.device.type == "meta" else "".join(f" {byte}\n" for byte in tolist(s))
    return f"{head}[strata.storage.UntypedStorage(device={s.device}) of size {s.nbytes()}]"


def tolist(s: Storage) -> list[int]:
    """The bytes as ints."""
    return _bytes(s).tolist()


def fill_(s: Storage, value: int) -> Storage:
    """Every byte becomes the number."""
    _bytes(s).fill_(value & 255)
    return s


def copy_(s: Storage, source: Storage, non_blocking: bool = False) -> Storage:
    """Takes the bytes of a storage of the same size, on any device."""
    if s.nbytes() != source.nbytes():
        raise RuntimeError(f"size does not match, self was {s.nbytes()} bytes but src was {source.nbytes()} bytes")
    _bytes(s).copy_(_bytes(source), non_blocking=non_blocking)
    return s


def clone(s: Storage) -> Storage:
    """A copy with memory of its own."""
    return _bytes(s).clone().untyped_storage()


def to(s: Storage, *, device: Any, non_blocking: bool = False) -> Storage:
    """The storage on a device: itself, where it is there."""
    wanted = strata.device(device)
    return s if s.device == wanted else _bytes(s).to(wanted, non_blocking=non_blocking).untyped_storage()


def cpu(s: Storage) -> Storage:
    """The storage in the CPU's memory: itself, where it is there."""
    return to(s, device="cpu")


def kind(s: Storage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the class; with a class of TypedStorage, the bytes as its numbers."""
    return "strata.storage.UntypedStorage" if dtype is None else dtype(wrap_storage=s)


def is_shared(s: Storage) -> bool:
    """Whether other processes may see the memory."""
    return _bytes(s).is_shared()


def share_memory_(s: Storage) -> Storage:
    """Moves the bytes, and all tensors over them, into memory that other processes can map."""
    _bytes(s).share_memory_()
    return s


def pin_memory(s: Storage, device: Any = None) -> Storage:
    """The bytes in memory that devices copy from without waiting."""
    return _bytes(s).pin_memory().untyped_storage()


def byteswap(s: Storage, dtype: strata.dtype) -> None:
    """Reverses the bytes of every number of that dtype (of complex ones: of each part)."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    whole = _bytes(s)[: s.nbytes() // size * size].view(-1, size)
    whole.copy_(whole.flip(-1))


def from_buffer(buffer: Any, *args: Any, dtype: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> Storage:
    """A copy of a buffer's bytes from `offset` on, `count` numbers of the dtype; byte_order "big" or "little" is that of the buffer."""
    size = dtype.itemsize
    part = memoryview(buffer).cast("B")[offset:]
    made = Storage(bytes(part[: (len(part) // size if count < 0 else count) * size]))
    if byte_order not in (None, "native", "little"):
        byteswap(made, dtype)
    return made


def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> Storage:
    """A storage over the first `nbytes` bytes of a file, mapped: what is written there goes to the file where shared=True, which makes
    the file as long as that, and else to memory alone. RuntimeError where the file is shorter."""
    import mmap
    import os

    file = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    try:
        size = os.fstat(file).st_size
        if size < nbytes and not shared:
            raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        if size < nbytes:
            os.ftruncate(file, nbytes)
        if not nbytes:
            return Storage(0)
        mapped = mmap.mmap(file, nbytes, mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(file)
    return strata.frombuffer(mapped, dtype=strata.uint8).untyped_storage()


def _as(name: str) -> Callable[[Storage], Any]:
    def converted(s: Storage) -> Any:
        dtype = getattr(strata, name)
        return strata.storage.TypedStorage(wrap_storage=_bytes(s).to(dtype).untyped_storage(), dtype=dtype)

    converted.__doc__ = f"The bytes as {name} numbers, in a TypedStorage."
    return converted


def attach() -> None:
    """Gives the class what stands here."""
    methods = {
        "__getitem__": getitem, "__setitem__": setitem, "__iter__": iterate, "__repr__": shown, "__copy__": clone, "tolist": tolist,
        "fill_": fill_, "copy_": copy_, "clone": clone, "to": to, "cpu": cpu, "type": kind, "is_shared": is_shared,
        "share_memory_": share_memory_, "pin_memory": pin_memory, "byteswap": byteswap, "from_buffer": staticmethod(from_buffer), "from_file": staticmethod(from_file),
        "element_size": lambda s: 1, "untyped": lambda s: s, "resizable": lambda s: not s.is_borrowed(),
        "is_pinned": lambda s, device=None: _bytes(s).is_pinned(), "get_device": lambda s: _bytes(s).get_device(),
        "is_sparse": False, "is_sparse_csr": False, "filename": None,
    }  # fmt: skip
    names = {"half": "float16", "float": "float32", "double": "float64", "char": "int8", "byte": "uint8", "short": "int16",
             "int": "int32", "long": "int64", "bool": "bool", "bfloat16": "bfloat16", "complex_float": "complex64",
             "complex_double": "complex128"}  # fmt: skip
    flags = {d["flag"]: property(lambda s, name=d["name"]: s.device.type == name) for d in _device_words.devices()}
    for name, member in {**methods, **flags, **{short: _as(name) for short, name in names.items()}}.items():
        setattr(Storage, name, member)


attach()
