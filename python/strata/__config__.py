"""How this library was built."""

from __future__ import annotations

import strata

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The version, and the library below products and convolutions."""
    libraries = [strata.backends.library_report(), strata.backends.lapack_report(), strata.backends.fourier_report()]
    return "\n  - ".join([f"Strata {strata.version.strata}", "CPU", *libraries]) + "\n"


def parallel_info() -> str:
    """The numbers of threads."""
    return f"strata.get_num_threads() : {strata.get_num_threads()}\n"
