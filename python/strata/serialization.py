"""Saving and loading of tensors, states and nested plain values, without code in files.

`save` writes a package: a safetensors file with a description of the nesting. `load` reads packages, plain safetensors
files and PyTorch's `.pt` files; it tells them apart by their content. Nothing that a file holds is ever run.
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

__all__ = ["load", "save"]


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
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object to a path or to a file object with `write`.

    obj: tensors, Parameters and plain values (None, bool, int, float, complex, str, bytes, dtype, device, Size), nested
    in dicts, lists, tuples and sets up to 64 levels: state_dicts of modules, optimisers and schedulers are that. Views of
    one storage stay views of one storage; what no tensor reaches of a storage is not written. TypeError names the place
    of what a file cannot hold, and what to do. The file appears under its name when it is complete: an error or a crash
    leaves what was there before.

    A path that ends in `.safetensors` with a flat dict of tensors gives a plain safetensors file (which has no
    requires_grad and no shared memory: RuntimeError for the latter). The other arguments are PyTorch's and change
    nothing: there is no pickle in what is written.
    """
    path = _path_of(f, "write")
    if path is not None and path.endswith(".safetensors") and _is_flat(obj):
        _C._save_safetensors(dict(obj), path, {"format": "pt"})
    else:
        _C._save(obj, f.write if path is None else path)


def _place(map_location: MapLocation) -> Any:
    """None, a device, or a function (storage, location) -> device."""
    if map_location is None or isinstance(map_location, _C.device):
        return map_location
    if isinstance(map_location, str):
        return _C.device(map_location)
    if isinstance(map_location, dict):
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


def load(
    f: PathOrFile,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save` wrote, a safetensors file (as a dict of tensors) or PyTorch's `.pt` zip file.

    f: a path, or a file object with `read`. map_location: where tensors go; a device, a dict {saved: wanted}, or a
    function (storage, location) -> storage; by default the device that the file names. mmap: True maps the file, so that
    only pages that are used get read; the file must then not be cut while tensors live, and checksums are not tested.

    Of a `.pt` file only tensors and plain values are read, by names on a fixed list; weights_only=False changes nothing
    about that, nor do the other arguments. RuntimeError for damaged files, refused content (the refused name is in the
    text) and formats that are not read; FileNotFoundError for a path where nothing is.
    """
    path = _path_of(f, "read")
    if mmap and path is None:
        raise ValueError("load: f must be a path in order to use mmap=True")
    source = f.read() if path is None else path
    if path is None and not isinstance(source, bytes):
        if isinstance(source, str):
            raise TypeError("load: the file object gives text; open it in binary mode: open(path, 'rb')")
        source = bytes(source)
    return _C._load(source, _place(map_location), bool(mmap))
