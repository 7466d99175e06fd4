"""Reads .pt files with names that the user has declared safe: a pickle machine that calls nothing else.

The C++ reader reads what weights files hold. Where it meets another name, this one reads the file again: it knows the
same names and those of strata.serialization.add_safe_globals, and says which one is missing as PyTorch says it.
"""

from __future__ import annotations

import _codecs
import _compat_pickle
import io
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict

import strata
from strata import _C, Tensor, _pt_names, _pt_read, _utils, storage
from strata._tensor import _rebuild_from_type_v2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

_BLOCKED = ("sys", "os", "posix", "nt")
safe: dict[int, Any] = {}  # what the user has declared safe, by identity


class UnpicklingError(pickle.UnpicklingError, RuntimeError):
    """A file that is no weights file."""


UnpicklingError.__module__ = "_pickle"


def _encode(text: str, codec: str) -> bytes:
    """What pickles of protocol 2 call for bytes."""
    if codec not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"expected the codec latin1, got {codec!r:.40}")
    return _codecs.encode(text, codec)


def _bytearray(*args: Any) -> bytearray:
    """bytearray of bytes, or of text: of a number it would take as much memory as the file says."""
    if not all(isinstance(arg, (bytes, str)) for arg in args):
        raise pickle.UnpicklingError("expected bytes or text for a bytearray")
    return bytearray(_encode(*args) if len(args) == 2 else args[0] if args else b"")


def _layout(name: str) -> Any:
    return strata.serialization._get_layout(name)


def _from_type(function: Any, kind: Any, args: tuple, state: Any) -> Tensor:
    """_rebuild_from_type_v2, whose function must be one that makes a tensor, and whose class one that is known."""
    plain = (_utils._rebuild_tensor, _utils._rebuild_tensor_v2, _utils._rebuild_tensor_v3, _utils._rebuild_parameter)
    if not any(function is known for known in plain):
        raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {function}")
    if kind is not Tensor and kind is not strata.nn.Parameter and id(kind) not in safe_objects():
        raise pickle.UnpicklingError(f"Can only build tensors of classes allowlisted via `add_safe_globals` but got {kind}")
    if kind in (Tensor, strata.nn.Parameter):
        _check_names(kind, state)
    return _rebuild_from_type_v2(function, kind, args, state)


def _with_state(data: Tensor, requires_grad: bool, hooks: Any, state: Any) -> Tensor:
    _check_names(strata.nn.Parameter, state)
    return _utils._rebuild_parameter_with_state(data, requires_grad, hooks, state)


def _check_names(kind: type, state: Any) -> None:
    """A file may add attributes to our classes, not hide theirs."""
    for name in state if isinstance(state, dict) else ("__dict__",):
        if not isinstance(name, str) or hasattr(kind, name):
            raise pickle.UnpicklingError(f"the file sets the attribute {name!r:.80}, which would hide one of {kind}")


def _known() -> tuple[dict[str, Any], dict[int, Callable]]:
    """Objects by the names that files have for them; and what calling one does, by the object's identity."""
    names: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": strata.nn.Parameter,
        "torch.Size": strata.Size,
        "torch.Tensor": Tensor,
        "torch.device": strata.device,
        "torch.storage.UntypedStorage": _C.UntypedStorage,
        "torch.storage.TypedStorage": storage.TypedStorage,
        "torch.serialization._get_layout": _layout,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
        "_codecs.encode": _codecs.encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
    }
    names.update({f"torch.{name}": getattr(storage, name) for name in storage.DTYPES})
    names.update({f"torch.{n}": v for n, v in vars(_C).items() if isinstance(v, strata.dtype)})
    rebuild = [name for name in vars(_utils) if name.startswith("_rebuild_")]
    names.update({f"torch._utils.{name}": getattr(_utils, name) for name in rebuild})
    calls = {id(f): f for f in (OrderedDict, Counter, strata.Size, strata.device, _layout, set, complex)}
    calls[id(bytearray)] = _bytearray
    calls.update({id(names[f"torch._utils.{name}"]): names[f"torch._utils.{name}"] for name in rebuild})
    calls[id(_codecs.encode)] = _encode
    calls[id(_rebuild_from_type_v2)] = _from_type
    calls[id(_utils._rebuild_parameter_with_state)] = _with_state
    return names, calls


def safe_names() -> dict[str, Any]:
    """What the user declared safe, by the names that files have for it."""
    found = {}
    for entry in safe.values():
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(
                    f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
                )
            if not isinstance(entry[1], str):
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
            entry, name = entry
        else:
            name = f"{entry.__module__}.{entry.__qualname__}"
        module, _, last = name.rpartition(".")
        found[f"{_pt_names.there(module)}.{last}"] = entry
    return found


def safe_objects() -> dict[int, Any]:
    """The same by identity."""
    return {id(value): value for value in safe_names().values()}


class Reader:
    """Runs the opcodes that torch.save writes, protocol 2."""

    def __init__(self, file: IO[bytes], storages: Callable | None, fields: int = 5) -> None:
        self._file = file
        self._fields = fields  # of a storage's persistent id
        self._storages = storages
        self._stack: list = []
        self._marks: list[list] = []
        self._memo: dict[int, Any] = {}
        self._names, self._calls = _known()
        self._user_names = safe_names()
        self._user = {id(value): value for value in self._user_names.values()}

    def _take(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise EOFError
        return data

    def _unpack(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def load(self) -> Any:
        """The object. UnpicklingError for names and calls that are not known, other errors for damaged pickles."""
        steps, push = _STEPS, self._stack
        while True:
            code = self._take(1)
            if code == pickle.STOP:
                return self._stack.pop()
            if code not in steps:
                raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")
            push = steps[code](self)
            if push is not _NOTHING:
                self._stack.append(push)

    def _pop_mark(self) -> list:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _mark(self) -> Any:
        self._marks.append(self._stack)
        self._stack = []
        return _NOTHING

    def _global(self) -> Any:
        module, name = (self._file.readline()[:-1].decode() for _ in range(2))
        if (module, name) in _compat_pickle.NAME_MAPPING:
            module, name = _compat_pickle.NAME_MAPPING[module, name]
        module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        full = f"{module}.{name}"
        if module in _BLOCKED:
            raise pickle.UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        for names in (self._names, self._user_names):
            if full in names:
                return names[full]
        full = full.removeprefix("builtins.")
        module, _, last = full.rpartition(".")
        full = f"{_pt_names.here(module)}.{last}" if module else last
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`strata.serialization.add_safe_globals([{full}])` or the `strata.serialization.safe_globals([{full}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def _new(self) -> Any:
        args, kind = self._stack.pop(), self._stack.pop()
        if kind is strata.nn.Parameter:
            return kind(*args)
        if kind is OrderedDict or kind is Counter:
            return kind()
        if id(kind) not in self._user or not isinstance(kind, type):
            raise pickle.UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{kind}"
            )
        return kind.__new__(kind, *args)

    def _reduce(self) -> Any:
        args, function = self._stack.pop(), self._stack.pop()
        call = self._calls.get(id(function)) or self._user.get(id(function))
        if call is None or not isinstance(args, tuple):
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {function}")
        return call(*args)

    def _build(self) -> Any:
        state, obj = self._stack.pop(), self._stack[-1]
        kind = type(obj)
        if kind is OrderedDict:
            _check_names(kind, state)
            obj.__dict__.update(state)
        elif id(kind) in self._user:
            if hasattr(obj, "__setstate__"):
                obj.__setstate__(state)
            else:
                slots = None
                if isinstance(state, tuple) and len(state) == 2:
                    state, slots = state
                obj.__dict__.update(state or {})
                for name, value in (slots or {}).items():
                    setattr(obj, name, value)
        else:
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )
        return _NOTHING

    def _append(self, items: list) -> Any:
        if type(self._stack[-1]) is not list:
            raise pickle.UnpicklingError(f"Can only append to lists, but got {type(self._stack[-1])}")
        self._stack[-1].extend(items)
        return _NOTHING

    def _set_items(self, items: list, code: str) -> Any:
        kind = type(self._stack[-1])
        if kind not in (dict, OrderedDict, Counter):
            raise pickle.UnpicklingError(
                f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got {kind}"
            )
        self._stack[-1].update(zip(items[::2], items[1::2], strict=True))
        return _NOTHING

    def _set_item(self) -> Any:
        value, key = self._stack.pop(), self._stack.pop()
        return self._set_items([key, value], "SETITEM")

    def _tuple(self, count: int) -> tuple:
        items = tuple(self._stack[-count:])
        if len(items) != count:
            raise pickle.UnpicklingError("unexpected MARK found")
        del self._stack[-count:]
        return items

    def _persistent(self) -> Any:
        pid = self._stack.pop()
        if type(pid) is not tuple or len(pid) != self._fields or pid[0] != "storage" or self._storages is None:
            raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {pid!r:.80}")
        kind = pid[1]
        if kind is not _C.UntypedStorage and not (isinstance(kind, type) and issubclass(kind, storage.TypedStorage)):
            raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {kind!r:.80}")
        return self._storages(pid)

    def _put(self, index: int) -> Any:
        self._memo[index] = self._stack[-1]
        return _NOTHING

    def _protocol(self) -> Any:
        version = self._take(1)[0]
        if version != 2:
            import warnings

            warnings.warn(
                f"Detected pickle protocol {version} in the checkpoint, which was not the default pickle protocol used by "
                "`strata.load` (2). The weights_only Unpickler might not support all instructions implemented by this "
                "protocol, please file an issue for adding support if you encounter this.",
                stacklevel=2,
            )
        return _NOTHING


_NOTHING = object()
_STEPS: dict[bytes, Callable[[Reader], Any]] = {
    pickle.GLOBAL: Reader._global,
    pickle.NEWOBJ: Reader._new,
    pickle.REDUCE: Reader._reduce,
    pickle.BUILD: Reader._build,
    pickle.APPEND: lambda r: r._append([r._stack.pop()]),
    pickle.APPENDS: lambda r: r._append(r._pop_mark()),
    pickle.SETITEM: Reader._set_item,
    pickle.SETITEMS: lambda r: r._set_items(r._pop_mark(), "SETITEMS"),
    pickle.MARK: Reader._mark,
    pickle.TUPLE: lambda r: tuple(r._pop_mark()),
    pickle.TUPLE1: lambda r: r._tuple(1),
    pickle.TUPLE2: lambda r: r._tuple(2),
    pickle.TUPLE3: lambda r: r._tuple(3),
    pickle.NONE: lambda r: None,
    pickle.NEWFALSE: lambda r: False,
    pickle.NEWTRUE: lambda r: True,
    pickle.EMPTY_TUPLE: lambda r: (),
    pickle.EMPTY_LIST: lambda r: [],
    pickle.EMPTY_DICT: lambda r: {},
    pickle.EMPTY_SET: lambda r: set(),
    pickle.BININT: lambda r: r._unpack("<i"),
    pickle.BININT1: lambda r: r._unpack("<B"),
    pickle.BININT2: lambda r: r._unpack("<H"),
    pickle.BINFLOAT: lambda r: r._unpack(">d"),
    pickle.BINUNICODE: lambda r: r._take(r._unpack("<I")).decode("utf-8", "surrogatepass"),
    pickle.SHORT_BINSTRING: lambda r: r._take(r._unpack("<B")).decode("utf-8"),
    pickle.BINPERSID: Reader._persistent,
    pickle.BINGET: lambda r: r._memo[r._unpack("<B")],
    pickle.LONG_BINGET: lambda r: r._memo[r._unpack("<I")],
    pickle.BINPUT: lambda r: r._put(r._unpack("<B")),
    pickle.LONG_BINPUT: lambda r: r._put(r._unpack("<I")),
    pickle.LONG1: lambda r: pickle.decode_long(r._take(r._unpack("<B"))),
    pickle.PROTO: Reader._protocol,
}


def read_zip(source: str | bytes, place: Any) -> Any:
    """The object of a .pt file, given as a path or as bytes."""
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        root = _pt_read.root_of(archive)
        storages = _pt_read.Storages(lambda key: archive.read(f"{root}data/{key}"), place)
        return Reader(io.BytesIO(archive.read(root + "data.pkl")), storages).load()


def read_legacy(source: str | bytes, place: Any) -> Any:
    """The object of a file from before PyTorch 1.6."""
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as file:
        return _pt_read.legacy(file, place, lambda file, storages: Reader(file, storages, 6).load())
