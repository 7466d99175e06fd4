"""Libraries below the operators: `with strata.backends.library(False):` computes products and convolutions without."""

from __future__ import annotations

from contextlib import contextmanager

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def library_report() -> str:
    """The name, version and instruction set of the library, or why there is none."""
    return _C._library_report()


@contextmanager
def library(enabled: bool = True) -> Iterator[None]:
    """Whether operators may use the library; False gives the generated kernels' bits. Restored at the end of the block."""
    before = _C._set_library_enabled(enabled)
    try:
        yield
    finally:
        _C._set_library_enabled(before)
