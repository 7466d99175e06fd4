"""Reads whole objects from PyTorch's .pt files by Python's unpickler: for files that are trusted, as it runs what they say.

strata.load comes here with weights_only=False alone. The format before PyTorch 1.6, five pickles and then the storages,
is read, too.
"""

from __future__ import annotations

import io
import pickle
import zipfile

import strata
from strata import _C, _pt_names, storage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


class Storages:
    """The storages of a file, made when a pickle first names them, on the device that `place` says."""

    def __init__(self, read: Callable[[str], bytes], place: Any) -> None:
        self._read, self._place = read, place
        self._made: dict[str, _C.UntypedStorage] = {}

    def __call__(self, pid: Any) -> Any:
        """The storage of a persistent id ("storage", class, key, location, number of elements)."""
        if not (isinstance(pid, tuple) and len(pid) == 5 and _text(pid[0]) == "storage"):
            raise pickle.UnpicklingError(f"expected the persistent id of a storage, got {pid!r:.80}")
        _, kind, key, location, _ = pid
        key, location = _text(key), _text(location)
        if key not in self._made:
            self._made[key] = self._moved(untyped(self._read(key)), location)
        dtype = strata.uint8 if kind is _C.UntypedStorage else kind.dtype or strata.get_default_dtype()
        return storage.TypedStorage(wrap_storage=self._made[key], dtype=dtype)

    def _moved(self, made: _C.UntypedStorage, location: str) -> _C.UntypedStorage:
        where = self._place(made, location) if callable(self._place) else self._place
        where = strata.device(location) if where is None else where
        if where.type == "cpu":
            return made
        flat = _C._tensor_over_storage(made, strata.uint8, 0, (made.nbytes(),), (1,))
        return flat.to(where).untyped_storage()


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def untyped(data: bytes) -> _C.UntypedStorage:
    """A storage with memory of its own that holds the bytes."""
    made = strata.empty(len(data), dtype=strata.uint8)
    if data:
        made.copy_(strata.frombuffer(bytearray(data), dtype=strata.uint8))
    return made.untyped_storage()


def _unpickler(module: Any, storages: Callable) -> Any:
    class Unpickler(module.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module == "torch" or module.startswith("torch."):
                return _pt_names.find(module, name)
            return super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return storages(pid)

    return Unpickler


def root_of(archive: zipfile.ZipFile) -> str:
    """The folder in the archive that holds data.pkl. RuntimeError where there is none."""
    for name in archive.namelist():
        if name.endswith("/data.pkl") or name == "data.pkl":
            return name[: -len("data.pkl")]
    raise RuntimeError("load: the file is a zip archive without data.pkl: not one of torch.save or strata.save")


def read_zip(source: str | bytes, place: Any, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """The object of a .pt file, given as a path or as bytes."""
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        root = root_of(archive)
        if root + "byteorder" in archive.namelist() and archive.read(root + "byteorder") != b"little":
            raise RuntimeError("load: the file was written on a machine with the highest byte first, which is not read; save it again elsewhere")
        storages = Storages(lambda key: archive.read(f"{root}data/{key}"), place)
        data = archive.read(root + "data.pkl")
        return _unpickler(pickle_module, storages)(io.BytesIO(data), **arguments).load()


def read_legacy(source: str | bytes, place: Any, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """The object of a file from before PyTorch 1.6, given as a path or as bytes. RuntimeError for a bare pickle."""

    def load(file: IO[bytes], storages: Callable) -> Any:
        return _unpickler(pickle_module, storages)(file, **arguments).load()

    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
        return legacy(file, place, load, arguments["encoding"])


class NoMagicNumber(RuntimeError):
    """A pickle that is no file of torch.save."""


class _Nothing:
    """Stands for what a pickle names or makes while it is only looked through: it takes what is done to it and does nothing."""

    def __new__(cls, *_: Any, **__: Any) -> _Nothing:
        return object.__new__(_Nothing)

    def __init__(self, *_: Any, **__: Any) -> None:
        self.dtype: strata.dtype | None = None  # of a storage's class

    def __call__(self, *_: Any, **__: Any) -> _Nothing:
        return _Nothing()

    def _take(self, *_: Any) -> None:
        pass

    __setstate__ = __setitem__ = append = extend = add = _take


class _Scan(pickle._Unpickler):
    """Finds the end of a pickle and the storages that it names: {key: (count, bytes of an element)}. Nothing of it is made or
    run, so that files that are not trusted can be looked through, too."""

    dispatch = dict(pickle._Unpickler.dispatch)
    dispatch[pickle.BYTEARRAY8[0]] = pickle._Unpickler.load_binbytes8  # a bytearray takes its memory before it is read

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self.found: dict[str, tuple[int, int]] = {}

    def find_class(self, module: str, name: str) -> _Nothing:
        named = _Nothing()
        if name in storage.DTYPES:
            named.dtype = getattr(strata, storage.DTYPES[name])
        elif name == "UntypedStorage":
            named.dtype = strata.uint8
        return named

    def persistent_load(self, pid: Any) -> _Nothing:
        if isinstance(pid, tuple) and len(pid) == 6 and _text(pid[0]) == "storage":
            _, kind, key, _, count, view = pid
            if view is not None:
                raise RuntimeError("load: the file holds a view of a storage as PyTorch before 0.4 wrote it, which is not read")
            if not isinstance(kind, _Nothing) or kind.dtype is None or not isinstance(count, int):
                raise pickle.UnpicklingError(f"expected the persistent id of a storage, got {pid!r:.80}")
            self.found.setdefault(_text(key), (count, kind.dtype.itemsize))
        return _Nothing()


def legacy(file: IO[bytes], place: Any, load: Callable, encoding: str = "utf-8") -> Any:
    """Magic number, version, facts of the machine, object, keys of storages: pickles, each read by `load(file, storages)`.
    Then the storages, as a count of elements and their bytes. NoMagicNumber where the first pickle is another one.

    The object's pickle is looked through for its end and its storages' sizes, and read when these are known: what it makes,
    conjugates and sparse tensors, asks for their numbers."""
    if load(file, None) != _LEGACY_MAGIC:
        raise NoMagicNumber("Invalid magic number; corrupt file?")
    for _ in range(2):  # the version of the protocol; sizes of integers, which are the same everywhere
        load(file, None)
    begin = file.tell()
    scan = _Scan(file, encoding)
    scan.load()
    end = file.tell()
    keys = [_text(key) for key in load(file, None)]
    here = file.tell()
    left = file.seek(0, 2) - here
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        file.seek(here)
        count, size = int.from_bytes(file.read(8), "little"), scan.found[key][1]
        if count != scan.found[key][0]:
            raise RuntimeError(f"load: the storage {key!r} has {count} elements; expected {scan.found[key][0]}, or the file is cut")
        left -= 8 + count * size
        if left < 0:
            raise RuntimeError(f"load: the storage {key!r} has more elements than the file holds, or it is cut")
        places[key] = here + 8, count * size
        here += 8 + count * size
    file.seek(begin)
    pickled = io.BytesIO(file.read(end - begin))

    def read(key: str) -> bytes:
        file.seek(places[key][0])
        return file.read(places[key][1])

    made = Storages(read, place)

    def storages(pid: Any) -> Any:
        if _text(pid[0]) == "module":  # a class with the source that it had
            return pid[1]
        return made(pid[:5])

    result = load(pickled, storages)
    file.seek(here)
    return result
