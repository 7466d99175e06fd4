"""The version of Strata, behind that of the PyTorch whose names it has: programs choose by that what they call."""

from __future__ import annotations

from strata import _lazy
from strata.torch_version import TorchVersion

strata = "0.1.0"
__version__ = TorchVersion(f"2.13.0+strata.{strata}")
debug = False
git_version = "Unknown"  # what PyTorch says of builds outside of git


def _library(name: str) -> None:
    """None for the libraries of devices that PyTorch's programs ask after."""
    from strata._device_words import version

    return version(name)


__getattr__ = _lazy.of(globals(), otherwise=_library)[0]
