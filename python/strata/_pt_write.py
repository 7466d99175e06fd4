"""Writes PyTorch's .pt files: a zip archive of one pickle and the storages that it names.

The pickle says torch.x for what is strata.x here, so that PyTorch reads what both have: tensors, parameters, state
dictionaries, layers, optimisers.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import types
import zipfile
from collections import OrderedDict
from pickle import whichmodule

import strata
from strata import _C, Tensor, _pt_names, _utils, storage
from strata._tensor import _rebuild_from_type_v2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

_ALIGNMENT = 64  # where storages begin in the file, so that they can be mapped
_STORAGES = {getattr(strata, dtype): name for name, dtype in storage.DTYPES.items()}


class _Storages:
    """Numbers the storages that a pickle names, and keeps them until they are written."""

    def __init__(self) -> None:
        self.keys: dict[int, str] = {}
        self.dtypes: dict[int, strata.dtype] = {}  # as each was first named: PyTorch's reader takes that for all that follow
        self.all: list[tuple[str, _C.UntypedStorage]] = []

    def name(self, obj: Any) -> tuple | None:
        """The persistent id of a storage; None for all else. RuntimeError for one that was named with another dtype."""
        if isinstance(obj, storage.TypedStorage):
            untyped, dtype, kind, size = obj.untyped(), obj.dtype, getattr(storage, _STORAGES[obj.dtype]), len(obj)
        elif isinstance(obj, _C.UntypedStorage):
            untyped, dtype, kind, size = obj, strata.uint8, _C.UntypedStorage, obj.nbytes()
        else:
            return None
        if self.dtypes.setdefault(untyped._cdata, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: expected "
                f"{self.dtypes[untyped._cdata]}, as first met, got {dtype}; save a clone() of one of them"
            )
        key = self.keys.get(untyped._cdata)
        if key is None:
            key = self.keys[untyped._cdata] = str(len(self.all))
            self.all.append((key, untyped))
        return "storage", kind, key, str(untyped.device), size


def _parts(tensor: Tensor, dtypes: dict[int, strata.dtype]) -> tuple:
    """What makes the plain tensor again: a function of strata._utils and its arguments. dtypes: of storages that are named
    already, by identity; a tensor that sees one of them as another dtype says so beside the storage."""
    shape, stride = tuple(tensor.shape), tensor.stride()
    if tensor.is_meta:
        return _utils._rebuild_meta_tensor_no_storage, (tensor.dtype, shape, stride, tensor.requires_grad)
    offset, untyped, hooks = tensor.storage_offset(), tensor.untyped_storage(), OrderedDict()
    named = dtypes.get(untyped._cdata, tensor.dtype if tensor.dtype in _STORAGES else strata.uint8)
    typed = storage.TypedStorage(wrap_storage=untyped, dtype=named)
    if named == tensor.dtype:
        return _utils._rebuild_tensor_v2, (typed, offset, shape, stride, tensor.requires_grad, hooks)
    memory = untyped if named == strata.uint8 else typed
    return _utils._rebuild_tensor_v3, (memory, offset, shape, stride, tensor.requires_grad, hooks, tensor.dtype)


def reduce(obj: Any, dtypes: dict[int, strata.dtype]) -> Any:
    """How a .pt file holds the object, where that is not Python's own way; NotImplemented otherwise."""
    if isinstance(obj, Tensor):
        kind = type(obj)
        if isinstance(obj, strata.nn.Buffer):
            state = {"_is_buffer": True, **vars(obj)}
            function, args = _parts(obj, dtypes)
            return _rebuild_from_type_v2, (function, Tensor, args, state)
        if kind.__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        function, args = _parts(obj, dtypes)
        if kind is Tensor and not vars(obj):
            return function, args
        return _rebuild_from_type_v2, (function, kind, args, dict(vars(obj)))
    if isinstance(obj, strata.Size):
        return strata.Size, (tuple(obj),)
    if isinstance(obj, strata.device):
        return strata.device, (obj.type,) if obj.index is None else (obj.type, obj.index)
    if isinstance(obj, strata.layout) or obj is strata.sparse_coo or obj is strata.sparse_csr:
        return strata.serialization._get_layout, (str(obj).replace("strata.", "torch."),)
    return NotImplemented


class _Pickler(pickle._Pickler):
    """Python's pickler in Python, which lets a subclass choose the names that it writes."""

    dispatch = dict(pickle._Pickler.dispatch)

    def __init__(self, file: IO[bytes], protocol: int, storages: _Storages) -> None:
        super().__init__(file, protocol)
        self._storages = storages
        self._kept: list = []  # an object's identity is its key in the memo

    def persistent_id(self, obj: Any) -> Any:
        return self._storages.name(obj)

    def reducer_override(self, obj: Any) -> Any:
        reduced = reduce(obj, self._storages.dtypes)
        self._kept.append(reduced)
        return reduced

    def save_global(self, obj: Any, name: str | None = None) -> None:
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = whichmodule(obj, name)
        if module != "strata" and not module.startswith("strata."):
            try:
                super().save_global(obj, name)
            except pickle.PicklingError:
                raise pickle.PicklingError(f"Can't pickle {obj!r}: attribute lookup {name} on {module} failed") from None
            return
        # Operators that are functions of both modules here are sure to be in this one there.
        layers = getattr(strata.nn.functional, name, None) is obj
        module = "torch.nn.functional" if layers else _pt_names.there(module, name)
        try:
            found = _pt_names.find(module, name)
        except (ImportError, AttributeError):
            found = None
        if found is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj}: attribute lookup {name} on {_pt_names.here(module)} failed")
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode("ascii"))
        self.memoize(obj)

    dispatch[types.FunctionType] = save_global


def _pickled(obj: Any, module: Any, protocol: int, storages: _Storages) -> bytes:
    file = io.BytesIO()
    if module is None or module is pickle:
        _Pickler(file, protocol, storages).dump(obj)
    else:

        class Named(module.Pickler):
            def persistent_id(self, obj: Any) -> Any:
                return storages.name(obj)

        Named(file, protocol=protocol).dump(obj)
    return file.getvalue()


def _bytes(untyped: _C.UntypedStorage) -> Any:
    """The storage's bytes, without a copy where NumPy is there."""
    flat = _C._tensor_over_storage(untyped, strata.uint8, 0, (untyped.nbytes(),), (1,)).cpu()
    try:
        return memoryview(flat.numpy())
    except (ImportError, RuntimeError):
        return flat.untyped_storage().tobytes()


def _record(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    """Adds a record, uncompressed, whose data begin at a multiple of 64 bytes."""
    info = zipfile.ZipInfo(name)
    header = 30 + len(name) + (20 if len(data) * 1.05 > zipfile.ZIP64_LIMIT else 0)
    fill = -(archive.fp.tell() + header + 4) % _ALIGNMENT
    info.extra = b"FB" + fill.to_bytes(2, "little") + b"Z" * fill
    archive.writestr(info, data)


def write(obj: Any, file: Any, pickle_module: Any, protocol: int) -> None:
    """Writes the archive to a file object with `write`."""
    storages = _Storages()
    data = _pickled(obj, pickle_module, protocol, storages)
    with zipfile.ZipFile(_Sink(file.write), "w") as archive:
        for name, content in ((".format_version", b"1"), (".storage_alignment", b"64"), ("byteorder", b"little")):
            _record(archive, f"archive/{name}", content)
        _record(archive, "archive/data.pkl", data)
        for key, untyped in storages.all:
            _record(archive, f"archive/data/{key}", _bytes(untyped))
        _record(archive, "archive/version", b"3\n")


class _Sink:
    """A file that can only be written, whole: a file object's `write` may take less than it is given."""

    def __init__(self, write: Callable) -> None:
        self._write = write

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while len(rest):
            taken = self._write(rest)
            rest = rest[len(rest) if taken is None else taken :]
        return size

    def flush(self) -> None:
        """Nothing is kept back."""


def write_path(obj: Any, path: str, pickle_module: Any, protocol: int) -> None:
    """Writes the archive to a path, where it appears when it is complete. RuntimeError where it cannot be written."""
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path) or folder} does not exist.")
    there = os.path.exists(real)
    try:
        if there and not os.path.isfile(real):  # a device or pipe takes bytes and has no name to give
            with open(real, "wb", buffering=0) as out:
                write(obj, out, pickle_module, protocol)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        try:
            with open(handle, "wb", buffering=0) as out:
                write(obj, out, pickle_module, protocol)
                os.fchmod(out.fileno(), os.stat(real).st_mode & 0o7777 if there else 0o666 & ~_umask())
                os.fsync(out.fileno())
            os.replace(temporary, real)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        kept = "; what was there is unchanged" if there else ""
        raise RuntimeError(f"save: cannot write {path}: {error.strerror or error}{kept}") from None


def _umask() -> int:
    """The process's mask of file modes, read where that changes nothing; 0o22 where it cannot be read."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))
    except (OSError, StopIteration):
        return 0o22
