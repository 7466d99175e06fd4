"""The device beside the CPU, if a plugin offers one. No plugin is loaded in this version."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    import strata


def is_available() -> bool:
    """Whether a plugin offers a device that is there."""
    return False


def device_count() -> int:
    """The number of its devices."""
    return 0


def current_accelerator(check_available: bool = False) -> strata.device | None:
    """The device type, or None."""
    return None


def _missing(name: str) -> NoReturn:
    raise RuntimeError(
        f"strata.accelerator.{name}: no plugin with a device is loaded; test strata.accelerator.is_available() first"
    )


def current_device_index() -> int:
    """Raises RuntimeError: there is no device."""
    _missing("current_device_index")


def set_device_index(device: Any) -> None:
    """Raises RuntimeError: there is no device."""
    _missing("set_device_index")


def current_stream(device: Any = None) -> Any:
    """Raises RuntimeError: there is no device."""
    _missing("current_stream")


def synchronize(device: Any = None) -> None:
    """Raises RuntimeError: there is no device."""
    _missing("synchronize")
