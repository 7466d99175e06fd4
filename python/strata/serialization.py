"""Saving and loading: `save` writes PyTorch's .pt files, `load` reads them without running anything that they hold.

With weights_only=False `load` unpickles, as PyTorch does: for files that are trusted. Safetensors files and packages
(`.strata`, which the C++ library writes, too) are told apart by their content.
"""

from __future__ import annotations

import os

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any, Union

    PathOrFile = Union[str, os.PathLike, IO[bytes]]
    MapLocation = Union[Callable, _C.device, str, dict, None]

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]
DEFAULT_PROTOCOL = 2
MAP_LOCATION = object  # in annotations: what `map_location` may be


def _path_of(f: PathOrFile, attribute: str) -> str | None:
    """The path, or None for a file object with that method."""
    if isinstance(f, (str, os.PathLike)):
        return os.fsdecode(f)
    if not hasattr(f, attribute):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a {attribute!r} attribute, got {type(f).__name__}"
        )
    return None


def _is_flat(obj: object) -> bool:
    return isinstance(obj, dict) and all(
        isinstance(name, str) and isinstance(value, _C.TensorBase) for name, value in obj.items()
    )


def save(
    obj: object,
    f: PathOrFile,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a path or to a file object with `write`: PyTorch's .pt format, which PyTorch reads.

    obj: anything that Python can pickle: state_dicts, whole modules, optimisers, arrays. Names of this package are
    written as PyTorch's (torch.nn.modules.linear.Linear), so what both have is read by both. Views of one storage stay
    views of one storage, which is written whole. A path's file appears under its name when it is complete: an error or a
    crash leaves what was there before.

    The path's end chooses two other formats: `.safetensors` with a flat dict of tensors gives a plain safetensors file
    (RuntimeError where tensors share memory); `.strata` a package with checksums, which holds tensors and plain values
    alone (TypeError names the place of what it cannot hold) and of storages only what tensors reach.

    pickle_module: whose Pickler makes the pickle; names are then this package's own. The last two arguments are
    PyTorch's and change nothing.
    """
    path = _path_of(f, "write")
    if path is not None and path.endswith(".safetensors") and _is_flat(obj):
        _C._save_safetensors(dict(obj), path, {"format": "pt"})
    elif path is not None and path.endswith(".strata"):
        _C._save(obj, path)
    else:
        from strata import _pt_write

        if path is None:
            _pt_write.write(obj, f, pickle_module, pickle_protocol)
        else:
            _pt_write.write_path(obj, path, pickle_module, pickle_protocol)


def _place(map_location: MapLocation) -> Any:
    """None, a device, or a function (storage, location) -> device."""
    if map_location is None or isinstance(map_location, _C.device):
        return map_location
    if isinstance(map_location, str):
        return _C.device(map_location)
    if isinstance(map_location, dict):
        if _C.device(map_location.get("cpu", "cpu")).type == "meta":  # tensors without memory are made from the CPU's
            return _C.device("meta")
        return lambda storage, location: _C.device(map_location.get(location, location))
    if not callable(map_location):
        raise TypeError(
            "load: map_location must be a device, a str, a dict of locations, a function (storage, location) -> storage, "
            f"or None, got {type(map_location).__name__}"
        )

    def ask(storage: _C.UntypedStorage, location: str) -> _C.device:
        chosen = map_location(storage, location)
        return _C.device(location) if chosen is None else chosen.device

    return ask


def default_restore_location(storage: _C.UntypedStorage, location: str) -> _C.UntypedStorage:
    """The storage at a location such as "cpu", for a map_location that asks for some alone."""
    return storage if storage.device == _C.device(location) else storage.to(device=_C.device(location))


def location_tag(storage: _C.UntypedStorage) -> str:
    """The location that a file names for it."""
    return str(storage.device)


def _weights_only(asked: bool | None, pickle_module: Any) -> bool:
    """Whether to read by the restricted reader: the argument, then two environment variables, then True."""
    true = ("1", "y", "yes", "true")
    force, allow = (
        os.getenv(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", "0").lower() in true for name in ("", "NO_")
    )
    if force and allow:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if force:
        return True
    if asked is None and allow:
        import warnings

        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not "
            "explicitly passed to `strata.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if asked is None else asked


def load(
    f: PathOrFile,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save` wrote, a .pt file of PyTorch, a safetensors file (as a dict of tensors), or a package.

    f: a path, or a file object with `read`. map_location: where tensors go; a device, a dict {saved: wanted}, or a
    function (storage, location) -> storage; by default the device that the file names. mmap: True maps the file, so that
    only pages that are used get read; the file must then not be cut while tensors live, and checksums are not tested.

    weights_only: True, the default, reads tensors, plain values and what `add_safe_globals` allows, by names on a fixed
    list, and runs nothing of the file: pickle.UnpicklingError names what was refused. False unpickles anything, which runs
    what the file says: only for files from a source that you trust; pickle_module and further arguments go to the
    unpickler. RuntimeError for damaged files, and of what is no file of these a pickle.UnpicklingError, too;
    EOFError for an empty one; FileNotFoundError for a path where nothing is.
    """
    restricted = _weights_only(weights_only, pickle_module)
    if restricted and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    path = _path_of(f, "read")
    if mmap and path is None:
        raise ValueError("load: f must be a path in order to use mmap=True")
    source = f.read() if path is None else path
    if path is None and not isinstance(source, bytes):
        if isinstance(source, str):
            raise TypeError("load: the file object gives text; open it in binary mode: open(path, 'rb')")
        source = bytes(source)
    place = _place(map_location)
    if isinstance(place, _C.device) and place.type == "meta":
        loaded = load(
            f if path is not None else _file_of(source), "cpu", pickle_module, weights_only=weights_only,
            mmap=mmap or (restricted and path is not None), **pickle_load_args,
        )  # fmt: skip
        return _without_data(loaded, {})
    if not restricted:
        head = source[:4] if isinstance(source, bytes) else _head(source)
        if head[:2] == b"PK" or head[:1] == b"\x80":
            return _unpickle(source, head, place, pickle_module, pickle_load_args)
    try:
        return _C._load(source, place, bool(mmap))
    except RuntimeError as error:
        if str(error).endswith("is empty"):
            raise EOFError(str(error)) from None
        if "is neither a package" in str(error):  # PyTorch takes it for a pickle, whose error programs catch
            from strata._pt_restricted import UnpicklingError

            raise UnpicklingError(str(error)) from None
        again = ("nothing was run", "strided tensors only", "is a bare pickle", "with the mark", "a bare storage")
        if not any(reason in str(error) for reason in again):
            raise
        refused = error
    return _read_restricted(source, place, refused)


def _file_of(data: bytes) -> IO[bytes]:
    from io import BytesIO

    return BytesIO(data)


def _without_data(value: Any, done: dict[int, Any]) -> Any:
    """The value with tensors of the meta device in place of its own, in dicts, lists, tuples and modules. One tensor stays one."""
    from strata import Tensor, empty_strided, nn

    if isinstance(value, Tensor):
        if id(value) not in done:
            made = empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta").requires_grad_(value.requires_grad)
            done[id(value)] = nn.Parameter(made, value.requires_grad) if isinstance(value, nn.Parameter) else made
        return done[id(value)]
    if isinstance(value, dict):
        for key, item in value.items():
            value[key] = _without_data(item, done)
    elif isinstance(value, list):
        value[:] = [_without_data(item, done) for item in value]
    elif type(value) is tuple:
        return tuple(_without_data(item, done) for item in value)
    elif isinstance(value, nn.Module):
        return value.to("meta")
    return value


def _head(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(4)


def _unpickle(source: str | bytes, head: bytes, place: Any, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """The object of a trusted file."""
    import pickle
    import zipfile

    from strata import _pt_read

    arguments.setdefault("encoding", "utf-8")
    module = pickle_module or pickle
    try:
        if head[:2] == b"PK":
            return _pt_read.read_zip(source, place, module, arguments)
        return _pt_read.read_legacy(source, place, module, arguments)
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"load: the file is damaged or cut: {error}") from None


_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `strata.load` from `False` to `True`. "
    "Re-running `strata.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
_MORE = (
    "\n\nCheck the documentation of strata.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


def _read_restricted(source: str | bytes, place: Any, refused: RuntimeError) -> Any:
    """Reads again what the C++ reader refused: files before PyTorch 1.6, lazy conjugates, storages and types that are no part
    of a tensor, and the names that the user has declared safe. RuntimeError says why it cannot be made, too."""
    import pickle

    from strata import _pt_read, _pt_restricted

    try:
        read = _pt_restricted.read_legacy if "is a bare pickle" in str(refused) else _pt_restricted.read_zip
        return read(source, place)
    except pickle.UnpicklingError as error:
        text = str(error)
    except _pt_read.NoMagicNumber:  # some other pickle: the C++ reader has said so
        raise refused from None
    except RuntimeError:
        raise
    except Exception as error:
        name = "the file object's content" if isinstance(source, bytes) else repr(source)
        raise RuntimeError(
            f"load: {name} is damaged or cut, or holds what cannot be made: {type(error).__name__}: {error}"
        ) from error
    if "was not an allowed global by default" in text:
        text = (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in "
            f"the following error message.\n\tWeightsUnpickler error: {text}"
        )
    elif "is blocked" in text:
        text = f"Weights only load failed. {_UNSAFE}\n\n\n{text}"
    else:
        text = (
            f"Weights only load failed. {_UNSAFE}\nPlease file an issue with the following so that we can make "
            f"`weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{text}"
        )
    raise _pt_restricted.UnpicklingError(text + _MORE) from None


def add_safe_globals(safe_globals: list) -> None:
    """Lets `load` make and call these classes and functions when a file names them, also with weights_only=True.

    safe_globals: classes and functions, or pairs (object, "module.name" as files say it).
    """
    from strata import _pt_restricted

    for entry in safe_globals:
        _pt_restricted.safe[hash(entry)] = entry


def get_safe_globals() -> list:
    """What add_safe_globals was given."""
    from strata import _pt_restricted

    return list(_pt_restricted.safe.values())


def clear_safe_globals() -> None:
    """Forgets what add_safe_globals was given."""
    from strata import _pt_restricted

    _pt_restricted.safe.clear()


class safe_globals:
    """Within `with`, add_safe_globals of the list; afterwards these are forgotten."""

    def __init__(self, safe_globals: list) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *_: object) -> None:
        from strata import _pt_restricted

        for entry in self.safe_globals:
            _pt_restricted.safe.pop(hash(entry), None)


def get_unsafe_globals_in_checkpoint(f: PathOrFile) -> list[str]:
    """The names in a .pt file that `load` refuses with weights_only=True, as files say them. Nothing of it is run."""
    import pickletools
    import zipfile

    from strata import _pt_names, _pt_read, _pt_restricted

    with zipfile.ZipFile(f) as archive:
        data = archive.read(_pt_read.root_of(archive) + "data.pkl")
    known = {**_pt_restricted._known()[0], **_pt_restricted.safe_names()}
    names = {arg.replace(" ", ".", 1) for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    names = {"builtins." + name.removeprefix("__builtin__.") if name.startswith("__builtin__.") else name for name in names}
    unknown = (name.rpartition(".") for name in names - {*known})
    return sorted(f"{_pt_names.here(module)}.{last}" for module, _, last in unknown)


def _get_layout(name: str) -> _C.layout:
    """The layout of that name in a file. ValueError for what is none."""
    import strata

    known = {"strided": _C.strided, "sparse_coo": strata.sparse_coo, "sparse_csr": strata.sparse_csr}
    if name.rpartition(".")[2] not in known:
        raise ValueError(f"expected one of the layouts {sorted(known)}, got {name!r:.40}")
    return known[name.rpartition(".")[2]]
