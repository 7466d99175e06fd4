"""The version of Strata."""

__version__ = "0.1.0"
debug = False


def __getattr__(name: str) -> None:
    """None for the libraries of devices that PyTorch's programs ask after."""
    from strata._device_words import version

    return version(name)
