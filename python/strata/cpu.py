"""The CPU under the names that PyTorch gives every device."""

from __future__ import annotations

from strata import _device_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__path__: list[str] = []  # PyTorch's files of it are found elsewhere (_absent.py)
amp = _device_words.amp("cpu")
__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """One CPU, whatever its cores."""
    return 1


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one CPU."""


def synchronize(device: Any = None) -> None:
    """Does nothing: an operator has finished when it returns."""
