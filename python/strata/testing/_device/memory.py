"""Level 0: a device's memory, copies and statistics. Each check raises AssertionError, or an error of the device."""

from __future__ import annotations

import strata
from strata import accelerator

DTYPES = [
    strata.bool,
    strata.uint8,
    strata.int8,
    strata.int16,
    strata.int32,
    strata.int64,
    strata.float16,
    strata.bfloat16,
    strata.float32,
    strata.float64,
    strata.complex64,
    strata.complex128,
]


def _bytes(n: int, seed: int = 0) -> strata.Tensor:
    return ((strata.arange(n) * 37 + seed) % 251).to(strata.uint8)


def there_is_a_device(device: strata.device) -> None:
    """A device is there, and has a number, a current one and a queue that can be waited for."""
    names = getattr(strata, device.type)
    assert names.device_count() > 0, "the plugin has no device on this machine"
    assert names.current_device() == 0
    names.synchronize()


def bytes_come_back(device: strata.device) -> None:
    """What goes there comes back, in sizes around powers of two."""
    for n in (0, 1, 2, 3, 7, 8, 255, 256, 257, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1):
        host = _bytes(n)
        assert host.to(device).cpu().equal(host), f"{n} bytes"


def every_dtype_comes_back(device: strata.device) -> None:
    """Elements of every dtype keep their bits."""
    for dtype in DTYPES:
        item = strata.empty(0, dtype=dtype).element_size()
        host = _bytes(96 * item).view(dtype) if dtype != strata.bool else _bytes(96) % 2 == 0
        back = host.to(device).cpu()
        assert back.dtype == dtype and back.view(strata.uint8).equal(host.view(strata.uint8)), str(dtype)


def places_inside_of_a_memory(device: strata.device) -> None:
    """A part of a tensor is read and written without its neighbours."""
    host = _bytes(3000)
    there = host.to(device)
    for start, n in ((0, 1), (1, 1), (255, 3), (256, 256), (1000, 1999), (2999, 1)):
        assert there[start : start + n].cpu().equal(host[start : start + n]), f"{n} bytes from {start}"
        part = _bytes(n, 5)
        there[start : start + n].copy_(part)
        host[start : start + n] = part
        assert there.cpu().equal(host), f"after writing {n} bytes from {start}"


def copies_on_the_device(device: strata.device) -> None:
    """From one of its tensors to another; work of the queue runs in order."""
    host = _bytes(5000)
    first = host.to(device)
    second = first.clone()
    first.copy_(_bytes(5000, 9).to(device))
    assert second.cpu().equal(host) and first.cpu().equal(_bytes(5000, 9))


def copies_between_devices(device: strata.device) -> None:
    """Where there are several."""
    for number in range(1, getattr(strata, device.type).device_count()):
        other = strata.device(device.type, number)
        there = _bytes(1000).to(device).to(other)
        assert there.device == other and there.cpu().equal(_bytes(1000))


def memories_are_apart(device: strata.device) -> None:
    """Tensors that live at the same time share no byte."""
    held = [_bytes(n, n).to(device) for n in (1, 256, 511, 4096) for _ in range(8)]
    for t in held:
        assert t.cpu().equal(_bytes(t.numel(), t.numel()))


def what_does_not_fit(device: strata.device) -> None:
    """A memory that is too large raises OutOfMemory's error and leaves what there was."""
    host = _bytes(1000)
    there = host.to(device)
    before = accelerator.memory_allocated(device)
    for _ in range(3):
        try:
            strata.empty(1 << 52, dtype=strata.uint8, device=device)
        except RuntimeError as error:
            assert "expected 4503599627370496 bytes" in str(error), f"the error says: {error}"
        else:
            raise AssertionError("a memory of 2^52 bytes was given")
    assert accelerator.memory_allocated(device) == before and there.cpu().equal(host)


def memory_goes_back(device: strata.device) -> None:
    """Statistics count what tensors have; what they had is reused, and given back when that is asked for."""
    accelerator.synchronize(device)
    accelerator.empty_cache(device)
    before = accelerator.memory_allocated(device)
    for n in (1, 1000, 1 << 20):
        held = [strata.empty(n, dtype=strata.uint8, device=device) for _ in range(4)]
        assert accelerator.memory_allocated(device) >= before + 4 * n
        del held
    assert accelerator.memory_allocated(device) == before
    accelerator.empty_cache(device)
    assert accelerator.memory_reserved(device) == accelerator.memory_allocated(device)


CHECKS = [
    there_is_a_device,
    bytes_come_back,
    every_dtype_comes_back,
    places_inside_of_a_memory,
    copies_on_the_device,
    copies_between_devices,
    memories_are_apart,
    what_does_not_fit,
    memory_goes_back,
]
