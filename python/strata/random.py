"""Seeds and states of the default generator."""

from __future__ import annotations

from contextlib import contextmanager

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from strata import Tensor

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

default_generator = _C.default_generator


def _of_devices() -> list[_C.Generator]:
    return [
        _C._device_generator(f"{name}:{number}") for name, _, _, count in _C._device_plugins() for number in range(count)
    ]


def manual_seed(seed: int) -> _C.Generator:
    """Starts the default generators' streams of that seed, a number in [-2^63, 2^64), the CPU's and those of all devices;
    returns the CPU's generator."""
    for generator in _of_devices():
        generator.manual_seed(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Starts the streams of a seed that the system chose, the CPU's and those of all devices; returns the seed."""
    chosen = default_generator.seed()
    for generator in _of_devices():
        generator.manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The seed of the default generator's stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Goes on from a state that `get_rng_state()` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: object = None, enabled: bool = True, **_: object) -> Iterator[None]:
    """Restores the states of the default generators, the CPU's and those of all devices, at the end of the block."""
    if not enabled:
        yield
        return
    before = [(generator, generator.get_state()) for generator in (default_generator, *_of_devices())]
    try:
        yield
    finally:
        for generator, state in before:
            generator.set_state(state)
