"""Storages: the memory under tensors. An UntypedStorage is bytes; a TypedStorage is its view as elements of one dtype."""

from __future__ import annotations

import strata
from strata import _C, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

UntypedStorage = _C.UntypedStorage

# Classes by the names that files and old programs use.
DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """Memory of one dtype: a sequence of numbers which tensors may share.

    TypedStorage(n, dtype=...), TypedStorage([1.0, 2.0], dtype=...) or TypedStorage(wrap_storage=untyped, dtype=...).
    FloatStorage and its kind are the same with the dtype said.
    """

    dtype: strata.dtype = None
    is_sparse = False
    _device: strata.device | None = None

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ) -> None:
        dtype = dtype or type(self).dtype or strata.get_default_dtype()
        if wrap_storage is None:
            if len(args) > 1:
                raise TypeError(f"{type(self).__name__}: expected a size or a sequence, got {len(args)} arguments")
            source = args[0] if args else 0
            if isinstance(source, int):
                tensor = strata.empty(source, dtype=dtype, device=device)
            else:
                tensor = strata.tensor(source, dtype=dtype, device=device)
            wrap_storage = tensor.untyped_storage()
            self._device = tensor.device  # of no bytes: they would not tell that they are of no memory, either
        self._untyped_storage = wrap_storage
        self.dtype = dtype

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, device: Any = None, **options: Any) -> TypedStorage:
        """A copy of a buffer's numbers; options: those of UntypedStorage.from_buffer. RuntimeError for a dtype beside the class's own."""
        if dtype is not None and cls.dtype is not None:
            raise RuntimeError("from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer")
        dtype = cls.dtype or dtype or strata.get_default_dtype()
        return cls(wrap_storage=UntypedStorage.from_buffer(buffer, *args, dtype=dtype, **options), dtype=dtype)

    _from_buffer = from_buffer

    def _tensor(self) -> strata.Tensor:
        return _C._tensor_over_storage(self._untyped_storage, self.dtype, 0, (len(self),), (1,))

    def untyped(self) -> UntypedStorage:
        """The bytes beneath."""
        return self._untyped_storage

    @property
    def device(self) -> strata.device:
        return self._device or self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def nbytes(self) -> int:
        """Bytes of all."""
        return self._untyped_storage.nbytes()

    def __len__(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    size = __len__

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list:
        """The elements as Python's numbers."""
        return self._tensor().tolist()

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = self._tensor()[index].clone()
            return type(self)(wrap_storage=part.untyped_storage(), dtype=self.dtype)
        return self._tensor()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._tensor()[index] = strata.tensor(list(value), dtype=self.dtype) if isinstance(value, TypedStorage) else value

    def fill_(self, value: Any) -> TypedStorage:
        """Every element becomes the value."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Takes the elements of another storage of the same length."""
        self._tensor().copy_(source._tensor())
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return type(self)(wrap_storage=self._tensor().clone().untyped_storage(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """The storage in the CPU's memory: itself, where it is there."""
        if self.device.type == "cpu":
            return self
        return type(self)(wrap_storage=self._tensor().cpu().untyped_storage(), dtype=self.dtype)

    def type(self, dtype: Any = None) -> str:
        """The name of its class."""
        return _C._shown(f"strata.{type(self).__name__}")

    def is_shared(self) -> bool:
        """Whether other processes may see the memory."""
        return self._tensor().is_shared()

    def share_memory_(self) -> TypedStorage:
        """Moves the elements into memory that other processes can map."""
        shared = self._tensor().share_memory_()
        self._untyped_storage = shared.untyped_storage()
        return self

    def pickle_storage_type(self) -> str:
        """The name that files have for this dtype."""
        return next(name for name, dtype in DTYPES.items() if getattr(strata, dtype) == self.dtype)

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        kind = f"[strata.storage.{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
        return lines + kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other._cdata == self._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)


def _load_from_bytes(data: bytes) -> Any:
    """What Python's pickle of a PyTorch storage names: a file inside the pickle."""
    import io

    return strata.load(io.BytesIO(data), weights_only=False)


def _make(name: str) -> type:
    dtype = getattr(strata, DTYPES[name])
    return type(name, (TypedStorage,), {"__module__": "strata", "dtype": dtype, "__doc__": f"A TypedStorage of {dtype}."})


__getattr__, __dir__ = _lazy.of(globals(), otherwise=_make)
