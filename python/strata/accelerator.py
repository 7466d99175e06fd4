"""The device beside the CPU, whichever plugin offers it: torch.accelerator's functions.

A plugin is loaded by `load`, by the environment variable STRATA_PLUGINS (files, with colons between), or by an installed
package's entry point. The first one that was loaded is the current accelerator.
"""

from __future__ import annotations

import strata
from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


def load(path: str | os.PathLike) -> str:
    """Opens a device's plugin, a shared object, and gives the name under which its devices are known. Opened before, it is
    the same one. RuntimeError for what is no plugin of this version of the SDK."""
    import os

    return _C._device_load(os.path.abspath(path))


def _plugins() -> list:
    found = _C._device_plugins()
    if not found:
        _C._device_find()
        found = _C._device_plugins()
    return found


def is_available() -> bool:
    """Whether a plugin offers a device that is there."""
    return device_count() > 0


def device_count() -> int:
    """The number of the current accelerator's devices."""
    found = _plugins()
    return found[0][3] if found else 0


def current_accelerator(check_available: bool = False) -> strata.device | None:
    """The device type, or None."""
    found = _plugins()
    return strata.device(found[0][0]) if found and (found[0][3] > 0 or not check_available) else None


def _device(device: object, name: str) -> strata.device:
    if device is None or isinstance(device, int):
        own = current_accelerator()
        if own is None:
            raise RuntimeError(
                f"strata.accelerator.{name}: no plugin with a device is loaded; test strata.accelerator.is_available() first"
            )
        return own if device is None else strata.device(own.type, device)
    return strata.device(device)


def current_device_index() -> int:
    """The number of this thread's current device."""
    return _C._device_current(_device(None, "current_device_index"))


def set_device_index(device: object) -> None:
    """Makes a device, or that of a number, this thread's current one; None changes nothing."""
    if device is not None:
        _C._device_set_current(_device(device, "set_device_index"))


current_device_idx, set_device_idx = current_device_index, set_device_index  # their older names


class device_index:
    """Inside the block the device of that number is this thread's current one; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self._index = device

    def __enter__(self) -> None:
        if self._index is not None:
            self._before = current_device_index()
            set_device_index(self._index)

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            set_device_index(self._before)


def synchronize(device: object = None) -> None:
    """Waits until the device has done all that it was given; raises what went wrong there, by the operator's name and the
    line that called it."""
    _C._device_synchronize(_device(device, "synchronize"))


def memory_allocated(device: object = None) -> int:
    """Bytes that tensors have on the device."""
    return _C._device_memory(_device(device, "memory_allocated"))["live_bytes"]


def max_memory_allocated(device: object = None) -> int:
    """The most bytes that they had since reset_peak_memory_stats()."""
    return _C._device_memory(_device(device, "max_memory_allocated"))["peak_bytes"]


def memory_reserved(device: object = None) -> int:
    """Bytes that tensors have or that are kept for the next ones."""
    stats = _C._device_memory(_device(device, "memory_reserved"))
    return stats["live_bytes"] + stats["cached_bytes"]


def memory_stats(device: object = None) -> dict[str, int]:
    """Numbers of the allocator, under PyTorch's names; `num_device_alloc` counts calls that reached the plugin."""
    stats = _C._device_memory(_device(device, "memory_stats"))
    return {
        "allocated_bytes.all.current": stats["live_bytes"],
        "allocated_bytes.all.peak": stats["peak_bytes"],
        "reserved_bytes.all.current": stats["live_bytes"] + stats["cached_bytes"],
        "num_device_alloc": stats["allocations"],
    }


def reset_peak_memory_stats(device: object = None) -> None:
    """Makes the present use the peak."""
    _C._device_reset_peak(_device(device, "reset_peak_memory_stats"))


def empty_cache(device: object = None) -> None:
    """Gives memory that no tensor has back to the device."""
    _C._device_empty_cache(_device(device, "empty_cache"))


def empty_host_cache() -> None:
    """Gives pinned memory that no tensor has back to the system."""
    own = _device(None, "empty_host_cache")
    for number in range(device_count()):
        _C._device_empty_host_cache(_C.device(own.type, number))


def memory_owners(device: object = None) -> list[tuple[int, int, str]]:
    """(bytes, blocks, line) of what tensors have on the device, by the line that asked for it, the most first."""
    return _C._device_owners(_device(device, "memory_owners"))


def current_stream(device: object = None) -> strata.Stream:
    """This thread's current stream of the device."""
    return strata.Stream._of(device, what="current_stream")


def default_stream(device: object = None) -> strata.Stream:
    """The stream that is there from the start: every thread's current one until it sets another."""
    return strata.Stream._of(device, 0, "default_stream")


def set_stream(stream: strata.Stream) -> None:
    """Makes the stream this thread's current one of its device."""
    _C._stream_set(stream.device, stream.stream_id)


class stream:
    """`with strata.accelerator.stream(s):` runs operators on the stream; None changes nothing."""

    def __init__(self, stream: strata.Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.__exit__()
