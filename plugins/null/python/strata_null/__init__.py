"""The null device for Strata: where its plugin lies."""

from pathlib import Path


def plugin() -> str:
    """The path of the shared library, as the entry point `strata.devices` gives it."""
    return str(Path(__file__).resolve().parent / "libstrata_null.so")
