"""What `strata.<device>` offers while a plugin offers the device: torch's functions of a device."""

from __future__ import annotations

from strata import _C, accelerator
from strata._device_names import place
from strata._streams import Event, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata import Tensor

_made: dict[str, dict[str, Any]] = {}


def of(name: str) -> dict[str, Any]:
    """The functions by name."""
    if name not in _made:
        functions = _Functions(name)
        found = {n: getattr(functions, n) for n in dir(functions) if not n.startswith("_")}
        found["device"] = type("device", (_Current,), {"_name": name, "__module__": f"strata.{name}"})
        found["device_of"] = type("device_of", (_CurrentOf,), {"_name": name, "__module__": f"strata.{name}"})
        _made[name] = found
    return _made[name]


class _Current:
    """`with strata.<name>.device(1):` makes a device this thread's current one; None and -1 change nothing."""

    _name: str

    def __init__(self, device: object) -> None:
        self._index = None if device in (None, -1) else place(self._name, device, f"strata.{self._name}.device").index

    def __enter__(self) -> _Current:
        if self._index is not None:
            self._before = _C._device_current(_C.device(self._name))
            _C._device_set_current(_C.device(self._name, self._index))
        return self

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            _C._device_set_current(_C.device(self._name, self._before))


class _CurrentOf(_Current):
    """`with strata.<name>.device_of(tensor):` makes the tensor's device the current one; tensors elsewhere change nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device if obj.device.type == self._name else None)


class _Functions:
    def __init__(self, name: str) -> None:
        self._name = name

    def _device(self, device: object, function: str) -> _C.device:
        return place(self._name, device, f"strata.{self._name}.{function}")

    def _generator(self, device: object, function: str) -> _C.Generator:
        return _C._device_generator(self._device(device, function))

    def _generators(self) -> list[_C.Generator]:
        return [self._generator(number, "generator") for number in range(self.device_count())]

    # ---- devices
    def is_available(self) -> bool:
        """Whether a device is there."""
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        """True: the plugin is loaded."""
        return True

    def init(self) -> None:
        """Does nothing: the plugin is loaded."""

    def device_count(self) -> int:
        """The number of devices."""
        return next(count for name, _, _, count in _C._device_plugins() if name == self._name)

    def current_device(self) -> int:
        """The number of this thread's current device."""
        return self._device(None, "current_device").index

    def set_device(self, device: object) -> None:
        """Makes a device this thread's current one."""
        _C._device_set_current(self._device(device, "set_device"))

    def get_device_name(self, device: object = None) -> str:
        """The plugin's name and version."""
        self._device(device, "get_device_name")
        return next(f"{name} {version}" for name, version, _, _ in _C._device_plugins() if name == self._name)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """True: kernels are printed for bfloat16 as for every dtype."""
        return True

    # ---- queues
    def synchronize(self, device: object = None) -> None:
        """Waits until the device has done all that it was given; raises what went wrong there."""
        accelerator.synchronize(self._device(device, "synchronize"))

    def current_stream(self, device: object = None) -> Stream:
        """This thread's current stream of the device."""
        return accelerator.current_stream(self._device(device, "current_stream"))

    def default_stream(self, device: object = None) -> Stream:
        """The stream that is there from the start."""
        return accelerator.default_stream(self._device(device, "default_stream"))

    def set_stream(self, stream: Stream) -> None:
        """Makes the stream this thread's current one of its device."""
        accelerator.set_stream(stream)

    def stream(self, stream: Stream | None) -> accelerator.stream:
        """A context manager that runs operators on the stream; None changes nothing."""
        return accelerator.stream(stream)

    def Stream(self, device: object = None, priority: int = 0) -> Stream:  # noqa: N802
        """A stream of the device."""
        return Stream(self._device(device, "Stream"), priority=priority)

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:  # noqa: N802
        """An event of the device on whose stream it is recorded first."""
        return Event(self._device(None, "Event"), enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    # ---- memory
    def memory_allocated(self, device: object = None) -> int:
        """Bytes that tensors have on the device."""
        return accelerator.memory_allocated(self._device(device, "memory_allocated"))

    def max_memory_allocated(self, device: object = None) -> int:
        """The most bytes that they had since reset_peak_memory_stats()."""
        return accelerator.max_memory_allocated(self._device(device, "max_memory_allocated"))

    def memory_reserved(self, device: object = None) -> int:
        """Bytes that tensors have or that are kept for the next ones."""
        return accelerator.memory_reserved(self._device(device, "memory_reserved"))

    def memory_stats(self, device: object = None) -> dict[str, int]:
        """Numbers of the allocator, under PyTorch's names; `num_device_alloc` counts calls that reached the plugin."""
        return accelerator.memory_stats(self._device(device, "memory_stats"))

    def reset_peak_memory_stats(self, device: object = None) -> None:
        """Makes the present use the peak."""
        accelerator.reset_peak_memory_stats(self._device(device, "reset_peak_memory_stats"))

    def empty_cache(self) -> None:
        """Gives memory that no tensor has back to the devices."""
        for number in range(self.device_count()):
            accelerator.empty_cache(_C.device(self._name, number))

    # ---- random numbers
    def manual_seed(self, seed: int) -> None:
        """Starts the stream of that seed on the current device."""
        self._generator(None, "manual_seed").manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Starts the stream of that seed on every device."""
        for generator in self._generators():
            generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Starts the stream of a seed that the system chose on the current device."""
        self._generator(None, "seed").seed()

    def seed_all(self) -> None:
        """The same on every device, of one seed."""
        self.manual_seed_all(_C.Generator().seed())

    def initial_seed(self) -> int:
        """The seed of the current device's stream."""
        return self._generator(None, "initial_seed").initial_seed()

    def get_rng_state(self, device: object = None) -> Tensor:
        """The state of the device's generator, a uint8 tensor on the CPU."""
        return self._generator(device, "get_rng_state").get_state()

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of all devices' generators."""
        return [generator.get_state() for generator in self._generators()]

    def set_rng_state(self, new_state: Tensor, device: object = None) -> None:
        """Goes on from a state that `get_rng_state()` gave."""
        self._generator(device, "set_rng_state").set_state(new_state)

    def set_rng_state_all(self, new_states: list[Tensor]) -> None:
        """Goes on from the states that `get_rng_state_all()` gave."""
        for generator, state in zip(self._generators(), new_states):
            generator.set_state(state)
