"""The version of Strata."""

from __future__ import annotations

from strata import _lazy

__version__ = "0.1.0"
debug = False


def _library(name: str) -> None:
    """None for the libraries of devices that PyTorch's programs ask after."""
    from strata._device_words import version

    return version(name)


__getattr__ = _lazy.of(globals(), otherwise=_library)[0]
