"""Names of devices that users of PyTorch expect though no plugin offers them.

The words stand in one data file, `device_words.json`, and nowhere in this package. For each device of the file there is
a namespace `strata.<name>` that answers "not available" as PyTorch without that device does, and `Tensor.<name>()`
raises an error that says what to do.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

_FILE = "device_words.json"


def _load() -> dict:
    here = os.path.dirname(os.path.realpath(__file__))
    # In the source tree the file lies with the operator table; in a wheel it is beside this module.
    for path in (os.path.join(here, _FILE), os.path.join(here, "..", "..", "ops", _FILE)):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return json.load(file)
    return {"devices": [], "answers": {}, "silent": [], "raising": []}


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


def _namespace(name: str, words: dict) -> ModuleType:
    module = type(sys)(f"strata.{name}", f"The device '{name}', which no plugin offers here.")
    for function, value in words["answers"].items():
        setattr(module, function, _answering(function, value))
    for function in words["silent"]:
        setattr(module, function, _answering(function, None))
    for function in words["raising"]:
        setattr(module, function, _raising(f"strata.{name}.{function}", name))

    def lazily(attribute: str) -> Any:
        if attribute == "amp":
            import strata.amp

            return strata.amp
        raise AttributeError(f"module 'strata.{name}' has no attribute {attribute!r}")

    module.__getattr__ = lazily
    return module


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
