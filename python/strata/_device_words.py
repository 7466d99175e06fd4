"""Names of devices that users of PyTorch expect though no plugin offers them.

The words stand in one data file, `device_words.json`, and nowhere in this package. For each device of the file there is
a namespace `strata.<name>` that answers "not available" as PyTorch without that device does, and `Tensor.<name>()` and
`Module.<name>()` raise an error that says what to do. Settings of `strata.backends.<name>` can be made and read; they
change nothing.
"""

from __future__ import annotations

import os
import sys

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

_FILE = "device_words.json"


_words: dict = {}


def _load() -> dict:
    if not _words:
        _words.update(_read())
    return _words


def _read() -> dict:
    here = os.path.dirname(os.path.realpath(__file__))
    # In the source tree the file lies with the operator table; in a wheel it is beside this module.
    for path in (os.path.join(here, _FILE), os.path.join(here, "..", "..", "ops", _FILE)):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                # The json module takes four times as long to import as the rest of this package; as an expression of
                # Python's, whose words for three values are others, the file of ours is the same.
                return eval(file.read(), {"__builtins__": {}, "true": True, "false": False, "null": None})
    return {"devices": [], "answers": {}, "silent": [], "raising": [], "backends": {}}


def device_names() -> list[str]:
    """Names of the devices that programs may speak of."""
    return [device["name"] for device in _load()["devices"]]


def _way_out(what: str, name: str) -> str:
    return (
        f"{what}: no plugin for the device '{name}' is loaded, this program runs on the CPU. Test "
        "strata.accelerator.is_available() and use tensor.to(strata.accelerator.current_accelerator()), or drop the call"
    )


def _raising(what: str, name: str) -> Callable:
    def missing(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(_way_out(what, name))

    missing.__name__ = what.rsplit(".", 1)[-1]
    missing.__doc__ = f"Raises RuntimeError: there is no plugin for '{name}'."
    return missing


def _answering(name: str, value: Any) -> Callable:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    answer.__name__ = name
    answer.__doc__ = f"{value!r}: no plugin offers the device."
    return answer


def _amp(name: str) -> ModuleType:
    """strata.<name>.amp: strata.amp with the device already said. Members are made when they are first asked for."""
    module = type(sys)(f"strata.{name}.amp", f"Autocast and gradient scaling on '{name}', which is not there.")

    def member(attribute: str) -> Any:
        if attribute not in ("autocast", "GradScaler", "custom_fwd", "custom_bwd"):
            raise KeyError(attribute)
        from functools import partial

        import strata
        from strata import amp

        class autocast(amp.autocast):
            """Autocast on the device, which is not there: it warns and stays off."""

            def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
                super().__init__(name, strata.float16 if dtype is None else dtype, enabled, cache_enabled)

        module.autocast = autocast
        module.GradScaler = partial(amp.GradScaler, name)
        module.custom_fwd = partial(amp.custom_fwd, device_type=name)
        module.custom_bwd = partial(amp.custom_bwd, device_type=name)
        return getattr(module, attribute)

    module.__getattr__ = _lazy.of(vars(module), otherwise=member)[0]
    return sys.modules.setdefault(module.__name__, module)


def _namespace(name: str, words: dict) -> ModuleType:
    module = type(sys)(f"strata.{name}", f"The device '{name}', which no plugin offers here.")
    for function, value in words["answers"].items():
        setattr(module, function, _answering(function, value))
    for function in words["silent"]:
        setattr(module, function, _answering(function, None))
    for function in words["raising"]:
        raising = _raising(f"strata.{name}.{function}", name)
        if function[0].isupper():  # a class, which annotations and isinstance may name
            body = {"__init__": raising, "__doc__": raising.__doc__, "__module__": module.__name__}
            raising = type(function, (), body)
        setattr(module, function, raising)

    module.amp = _amp(name)
    return module


def install_module_methods(module_class: type) -> None:
    """`Module.<device>()` raises RuntimeError with the way out, as `Tensor.<device>()` does."""
    for device in _load()["devices"]:
        name = device["name"]
        if device["method"] and not hasattr(module_class, name):
            setattr(module_class, name, _raising(f"Module.{name}", name))


def _context(*args: Any, **kwargs: Any) -> Any:
    """A `with` block that changes nothing."""
    from contextlib import nullcontext

    return nullcontext()


def _settings(name: str, words: dict) -> ModuleType:
    module = type(sys)(name, "Settings of a library that is not there: kept, and read by nothing.")
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
    return {
        name: sys.modules.setdefault(f"strata.backends.{name}", _settings(f"strata.backends.{name}", words))
        for name, words in found.items()
    }


def install(tensor_class: type) -> dict[str, ModuleType]:
    """Adds flags and methods to the class and gives the namespaces by name; a plugin may replace them later."""
    words = _load()
    namespaces = {}
    for device in words["devices"]:
        name = device["name"]
        if not hasattr(tensor_class, device["flag"]):
            setattr(tensor_class, device["flag"], property(_answering(device["flag"], False)))
        if device["method"] and not hasattr(tensor_class, name):
            setattr(tensor_class, name, _raising(f"Tensor.{name}", name))
        namespaces[name] = sys.modules.setdefault(f"strata.{name}", _namespace(name, words))
    return namespaces
