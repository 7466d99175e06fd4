"""The names that a device has in Python: `strata.<name>`, `Tensor.<name>()`, `Tensor.is_<name>` and `Module.<name>()`.

A plugin brings no Python and changes none. These names are the core's: they ask, whenever they are used, whether a plugin
offers the device. Where none does, the namespaces of device_words.json give PyTorch's answers of a machine without it, and
other names are no attributes.
"""

from __future__ import annotations

import sys

from strata import _C, _device_words, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from strata import Tensor

_searched = False


def is_offered(name: str) -> bool:
    """Whether a plugin offers devices of that name; those that the environment and installed packages name are loaded for
    the first such question."""
    global _searched
    if any(row[0] == name for row in _C._device_plugins()):
        return True
    if _searched:
        return False
    _searched = True
    _C._device_find()
    return any(row[0] == name for row in _C._device_plugins())


def place(name: str, device: object, what: str) -> _C.device:
    """A device of that name: its current one for None, or one of a number. RuntimeError where there is no plugin,
    ValueError for devices of another name."""
    if not is_offered(name):
        raise RuntimeError(_device_words.way_out(what, name))
    if device is None:
        return _C.device(name, _C._device_current(_C.device(name)))
    found = _C.device(name, device) if isinstance(device, int) else _C.device(device)
    if found.type != name:
        raise ValueError(f"{what}: expected a device of '{name}', got '{found}'")
    return found


def _flag(name: str) -> property:
    return property(lambda self: self.device.type == name, doc=f"Whether the tensor is on a device of '{name}'.")


def _tensor_method(name: str) -> Callable:
    def move(
        self: Tensor,
        device: object = None,
        non_blocking: bool = False,
        memory_format: object = _C.preserve_format,
    ) -> Tensor:
        there = place(name, device, f"Tensor.{name}")
        return self.to(there, non_blocking=non_blocking, memory_format=memory_format)

    move.__name__ = move.__qualname__ = name
    move.__doc__ = f"The tensor on '{name}', on its current device unless one is given; itself where it is there."
    return move


def _module_method(name: str) -> Callable:
    def move(self: Any, device: object = None) -> Any:
        return self.to(place(name, device, f"Module.{name}"))

    move.__name__ = move.__qualname__ = name
    move.__doc__ = f"Moves parameters and buffers to '{name}', to its current device unless one is given."
    return move


# Names are added to the two classes, once, and what a class has stays. A __getattr__ of Tensor instead would make each call
# of a method take 80 ns more in Python 3.11, and overriding methods of modules could not call super()'s.


def _name_tensors(name: str, flag: str, method: bool, tensor_class: type) -> None:
    if not hasattr(tensor_class, flag):
        setattr(tensor_class, flag, _flag(name))
    if method and not hasattr(tensor_class, name):
        setattr(tensor_class, name, _tensor_method(name))


def _name_modules(name: str, module_class: type) -> None:
    if not hasattr(module_class, name):
        setattr(module_class, name, _module_method(name))


def loaded(name: str) -> None:
    """The core's call after it has loaded a plugin."""
    from strata import Tensor

    _name_tensors(name, f"is_{name}", True, Tensor)
    module = sys.modules.get("strata.nn.modules.module")
    if hasattr(module, "Module"):
        _name_modules(name, module.Module)


def install_module_methods(module_class: type) -> None:
    """`Module.<device>()` of the devices that programs speak of, and of those that are loaded."""
    for name in [d["name"] for d in _device_words.devices() if d["method"]] + [row[0] for row in _C._device_plugins()]:
        _name_modules(name, module_class)


class DeviceModule(type(sys)):
    """`strata.<name>`."""

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(name, doc)
        self._name = name.rpartition(".")[2]
        self.__path__: list[str] = []  # its parts are found by _absent.py

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "amp":
            self.amp = found = _device_words.amp(self._name)
            return found
        if attribute == "_initialized":
            return is_offered(self._name)
        try:
            if attribute.startswith("_"):
                raise KeyError(attribute)
            parts = _lazy.load("strata._device_parts")
            if attribute in parts.parts():
                return parts.part(self._name, attribute)
            if not is_offered(self._name):
                return _device_words.answer(self._name, attribute)
            from strata._device_functions import of

            return of(self._name)[attribute]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {attribute!r}") from None

    def __dir__(self) -> list[str]:
        from strata._device_functions import of

        return sorted({"amp", *_lazy.load("strata._device_parts").parts(), *(of(self._name) if is_offered(self._name) else _device_words.answers())})


def namespace(name: str) -> DeviceModule | Callable:
    """`strata.<name>` of a plugin's device, or a function that names a device. KeyError where no plugin offers one of that name."""
    if name.endswith("_dtype") and "_autocast_" in name:
        return _lazy.load("strata._device_parts").older(name)
    if name.startswith("_") or not is_offered(name):
        raise KeyError(name)
    return _module(name)


def _module(name: str) -> DeviceModule:
    return _lazy.made(f"strata.{name}", f"The devices of '{name}', with the names that PyTorch gives every device.", DeviceModule)


def install(tensor_class: type) -> dict[str, ModuleType]:
    """The names of devices that programs speak of though no plugin offers them: adds those of tensors and gives the
    namespaces."""
    made = {}
    for device in _device_words.devices():
        name = device["name"]
        _name_tensors(name, device["flag"], device["method"], tensor_class)
        made[name] = _module(name)
        made[name].amp  # noqa: B018 - makes it, for imports of it
    return made
