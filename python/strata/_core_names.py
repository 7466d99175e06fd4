"""Names that programs take from PyTorch's core module, `torch._C`, and that are Python's here: strata._C asks for them when they are
first used. Keys of the dispatcher and blocks that leave them out; the metaclass of tensors; settings of a compiler of source text.
"""

from __future__ import annotations

import strata
from strata import _device_words, _lazy
from strata._missing import missing_class
from strata.library import active_keys, inactive_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

_TensorMeta = type(strata.Tensor)
_KINDS = ("", "Autograd", "Autocast", "Sparse", "SparseCsr", "Quantized", "NestedTensor")  # what keys of a device begin with
_SCRIPT = "this version has no compiler of source text and no graphs of it; strata.fx and strata.export have graphs"


def _bit(name: str) -> int:
    """The key's place among those that the dispatcher has; 0 for keys of devices that no plugin offers, which no call passes."""
    try:
        return strata._C._dispatch_key_bit(name)
    except ValueError:
        pass
    for row in strata._C._device_plugins():
        kind, found, rest = name.partition(row[0].upper())
        if found and not rest and kind:
            return _bit(kind)
    return 0


class _Keys(type):
    def __getattr__(cls, name: str) -> DispatchKey:
        devices = [*(word.upper() for word in _device_words.device_names()), "PrivateUse1"]
        known = name in {kind + device for kind in _KINDS for device in devices}
        if not name[0].isupper() or not (known or _bit(name)):
            raise AttributeError(f"DispatchKey has no key {name!r}; an unknown key's error of strata.library.impl lists them")
        key = object.__new__(cls)
        key.name = name
        setattr(cls, name, key)
        return key


class DispatchKey(metaclass=_Keys):
    """A key of the dispatcher: `DispatchKey.AutocastCPU`. Keys that have one place here stand for one another: autocast of all devices
    is one key, and so is autograd. AttributeError for names that are none."""

    name: str

    def __new__(cls, *args: Any) -> DispatchKey:
        raise TypeError("DispatchKey: keys are attributes of the class, as DispatchKey.CPU")

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"

    def __reduce__(self) -> tuple:
        return getattr, (DispatchKey, self.name)


class DispatchKeySet:
    """Keys, of a DispatchKey or several: `DispatchKeySet(a) | DispatchKeySet(b)`; it is not changed."""

    def __init__(self, keys: DispatchKey | list[DispatchKey] = ()) -> None:
        given = [keys] if isinstance(keys, DispatchKey) else list(keys)
        for key in given:
            if not isinstance(key, DispatchKey):
                raise TypeError(f"DispatchKeySet: expected keys, got {type(key).__name__}")
        self._keys = {key.name: key for key in given}

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(self._keys.values())

    def has(self, key: DispatchKey) -> bool:
        """Whether it is one of them."""
        return key.name in self._keys

    __contains__ = has

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """These and another one."""
        return self | DispatchKeySet(key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """These without that one."""
        return self - DispatchKeySet(key)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([*self, *other])

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([key for key in self if key in other])

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet([key for key in self if key not in other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(frozenset(self._keys))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(self._keys)})"


class _ExcludeDispatchKeyGuard(inactive_keys):
    """A block in which no call on this thread passes these keys."""

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()
        for key in keys:
            self.bits |= _bit(key.name)


class _IncludeDispatchKeyGuard(active_keys):
    """A block in which every call on this thread passes these keys."""

    def __init__(self, keys: DispatchKey | DispatchKeySet) -> None:
        super().__init__()
        for key in DispatchKeySet(keys):
            self.bits |= _bit(key.name)


def _get_accelerator() -> strata.device:
    """The device beside the CPU, or the CPU where there is none."""
    return strata.accelerator.current_accelerator() or strata.device("cpu")


def _get_privateuse1_backend_name() -> str:
    """The name that PyTorch has for a device of a plugin that gave none; plugins have names of their own here."""
    return "privateuseone"


def _nn() -> ModuleType:
    from strata.nn.modules.module_conversion import _parse_to

    module = _lazy.made("strata._C._nn", "Readers of arguments.")
    module._parse_to = _parse_to
    return module


def _functorch() -> ModuleType:
    module = _lazy.made("strata._C._functorch", "Questions about tensors inside of vmap and grad, which call the function itself here.")
    module.is_legacy_batchedtensor = module.is_batchedtensor = module.is_gradtrackingtensor = lambda tensor: False
    return module


_MODULES = {"_nn": _nn, "_functorch": _functorch}
_OWN = (
    "DispatchKey DispatchKeySet _ExcludeDispatchKeyGuard _IncludeDispatchKeyGuard _TensorMeta _get_accelerator _get_privateuse1_backend_name"
)
_settings: dict[str, Any] = {}


def _setting(name: str) -> Callable:
    """A setting of PyTorch's compiler of source text, which what is scripted here runs without: kept, and told."""

    def change(value: Any) -> Any:
        before, _settings[name] = _settings.get(name, False), value
        return before

    change.__name__ = name
    change.__doc__ = "Keeps the value, which changes nothing; gives the one before."
    return change


def make(name: str) -> Any:
    """Those of strata._C. KeyError for names that are not here."""
    if name in _OWN.split():
        return globals()[name]
    if name in _MODULES:
        return _MODULES[name]()
    if name in ("Graph", "Value"):
        return missing_class("strata._C", name, _SCRIPT)
    if name.startswith(("_jit_set_", "_jit_override_can_fuse_on_")):
        return _setting(name)
    if name.startswith("_jit_can_fuse_on_"):
        return lambda: _settings.get(name.replace("_can", "_override_can"), False)
    raise KeyError(name)


