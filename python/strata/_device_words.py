"""What programs of PyTorch expect of devices that no plugin offers.

The words stand in one data file, `device_words.json`, and nowhere in this package. Of each device of the file
`strata.<name>` answers "not available" as PyTorch without that device does (strata._device_names asks here). Settings of
`strata.backends.<name>` can be made and read; they change nothing.
"""

from __future__ import annotations

import os

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

_FILE = "device_words.json"


_words: dict = {}
_devices: list[dict] = []


def _load() -> dict:
    if not _words:
        _words.update(_value(_read()))
    return _words


def _value(text: str) -> Any:
    """What JSON text says, that of `device_words.json`. The json module takes four times as long to import as the rest of this
    package; as an expression of Python's, whose words for three values are others, the text is the same."""
    return eval(text, {"__builtins__": {}, "true": True, "false": False, "null": None})


def _read() -> str:
    here = os.path.dirname(os.path.realpath(__file__))
    # In the source tree the file lies with the operator table; in a wheel it is beside this module.
    for path in (os.path.join(here, _FILE), os.path.join(here, "..", "..", "ops", _FILE)):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
    return '{"devices": [], "activities": [], "answers": {}, "silent": [], "raising": [], "same": {}, "backends": {}}'


def devices() -> list[dict]:
    """Of each device: its name, the name of the flag of tensors, and whether tensors have a method of its name."""
    if not _devices:
        # All that importing the package asks for, so this list alone is read; the whole file takes ten times as long.
        text = _read()
        begin = text.index("[", text.index('"devices"'))
        _devices.extend(_value(text[begin : text.index("]", begin) + 1]))
    return _devices


def activities() -> list[str]:
    """Names of devices that a profiler may be asked to record."""
    return _load()["activities"]


def device_names() -> list[str]:
    """Names of the devices that programs may speak of."""
    return [device["name"] for device in devices()]


def way_out(what: str, name: str) -> str:
    """What an error says where no plugin offers the device."""
    return (
        f"{what}: no plugin for the device '{name}' is loaded, this program runs on the CPU. Test "
        "strata.accelerator.is_available() and use tensor.to(strata.accelerator.current_accelerator()), or drop the call"
    )


def _raising(what: str, name: str) -> Callable:
    def missing(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(way_out(what, name))

    missing.__name__ = what.rsplit(".", 1)[-1]
    missing.__doc__ = f"Raises RuntimeError: there is no plugin for '{name}'."
    return missing


def _answering(name: str, value: Any) -> Callable:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    answer._strata_compile_mark = "constant"
    answer.__name__ = name
    answer.__doc__ = f"{value!r}: no plugin offers the device."
    return answer


def amp(name: str) -> ModuleType:
    """strata.<name>.amp: strata.amp with the device already said. Members are made when they are first asked for."""
    module = _lazy.made(f"strata.{name}.amp", f"Autocast and gradient scaling on '{name}'.")

    def member(attribute: str) -> Any:
        if attribute not in ("autocast", "GradScaler", "custom_fwd", "custom_bwd"):
            raise KeyError(attribute)
        from functools import partial

        import strata
        from strata import amp

        class autocast(amp.autocast):
            """Autocast on the device; where it is not there it warns and stays off."""

            def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
                half = strata.bfloat16 if name == "cpu" else strata.float16
                super().__init__(name, half if dtype is None else dtype, enabled, cache_enabled)

        module.autocast = autocast
        module.GradScaler = partial(amp.GradScaler, name)
        module.custom_fwd = partial(amp.custom_fwd, device_type=name)
        module.custom_bwd = partial(amp.custom_bwd, device_type=name)
        return getattr(module, attribute)

    module.__getattr__ = _lazy.of(vars(module), otherwise=member)[0]
    return module


_given: dict[tuple[str, str], Any] = {}


def answers() -> list[str]:
    """The names that `answer` knows."""
    words = _load()
    return [*words["answers"], *words["silent"], *words["raising"], *words["same"], *words.get("values", ())]


def answer(device: str, name: str) -> Any:
    """`strata.<device>.<name>` where no plugin offers the device; the same object each time. KeyError for other names."""
    if (device, name) not in _given:
        _given[device, name] = _made(device, name, _load())
    return _given[device, name]


def _made(device: str, name: str, words: dict) -> Any:
    if name in words.get("values", {}):
        return words["values"][name]
    if name in words["answers"]:
        return _answering(name, words["answers"][name])
    if name in words["silent"]:
        return _answering(name, None)
    if name in words["same"]:
        import strata

        return getattr(strata, words["same"][name])
    if name not in words["raising"]:
        raise KeyError(name)
    raising = _raising(f"strata.{device}.{name}", device)
    if name[0].isupper():  # a class, which annotations and isinstance may name
        body = {"__init__": raising, "__doc__": raising.__doc__, "__module__": f"strata.{device}"}
        return type(name, (), body)
    return raising


def _context(*args: Any, **kwargs: Any) -> Any:
    """A `with` block that changes nothing."""
    from contextlib import nullcontext

    return nullcontext()


def _settings(name: str, words: dict) -> ModuleType:
    module = _lazy.made(name, "Settings of a library that is not there: kept, and read by nothing.")
    for function, value in words.get("answers", {}).items():
        setattr(module, function, _answering(function, value))
    for function in words.get("silent", ()):
        setattr(module, function, _answering(function, None))
    for function in words.get("contexts", ()):
        setattr(module, function, _context)
    for setting, value in words.get("settings", {}).items():
        setattr(module, setting, value)
    for part, inner in words.get("parts", {}).items():
        setattr(module, part, _settings(f"{name}.{part}", inner))
    return module


def attention_backends() -> dict[str, int]:
    """Implementations of attention that need a device's library, by PyTorch's numbers."""
    return _load().get("attention", {})


def version(name: str) -> None:
    """None, which `strata.version.<name>` is for a device's library. AttributeError for other names."""
    if name not in _load().get("versions", ()):
        raise AttributeError(f"module 'strata.version' has no attribute {name!r}")


def backends() -> dict[str, ModuleType]:
    """The namespaces of strata.backends by name."""
    found = _load().get("backends", {})
    return {name: _settings(f"strata.backends.{name}", words) for name, words in found.items()}
