"""Names of devices in modules of their own, as PyTorch has some, and functions that have a device in their name. The words stand in
`device_words.json`; apart from _device_words, as importing the package asks for none of these.
"""

from __future__ import annotations

from strata import _device_words, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def older(name: str) -> Callable:
    """The function of strata that has the device in its name, as PyTorch's older ones. KeyError for other names."""
    from functools import partial

    import strata

    function, device = _device_words._load().get("older", {})[name]
    return partial(getattr(strata, function), device)


def parts() -> dict[str, list[str]]:
    """The modules that `part` knows, with the names in each."""
    return _device_words._load().get("parts", {})


def part(device: str, name: str) -> ModuleType:
    """`strata.<device>.<name>`, a module of PyTorch's: some of the device's own names, and some that no device has here. KeyError for
    other names."""
    names = parts()[name]
    module = _lazy.made(f"strata.{device}.{name}", f"Names of strata.{device} that PyTorch has in a module of their own.")

    def member(attribute: str) -> Any:
        if attribute not in names:
            raise KeyError(attribute)
        home = _lazy.load(f"strata.{device}")
        if hasattr(home, attribute):
            return getattr(home, attribute)
        from strata._missing import missing_function

        return missing_function(module.__name__, attribute, "this version writes no marks for outer tools; strata.profiler records what runs")

    module.__getattr__ = lambda attribute: _of_part(module.__name__, member, attribute)  # asked each time: a plugin may come
    return module


def _of_part(place: str, member: Callable, attribute: str) -> Any:
    try:
        return member(attribute)
    except KeyError:
        raise AttributeError(f"module {place!r} has no attribute {attribute!r}") from None
