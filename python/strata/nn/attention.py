"""Which implementation of scaled_dot_product_attention PyTorch should choose. There is one here."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum

from strata._device_words import attention_backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDPBackend", "sdpa_kernel"]


SDPBackend = IntEnum(
    "SDPBackend",
    {"ERROR": -1, "MATH": 0, "FLASH_ATTENTION": 1, "EFFICIENT_ATTENTION": 2, "OVERRIDEABLE": 4, **attention_backends()},
    module=__name__,
)
SDPBackend.__doc__ = "PyTorch's implementations, by its numbers."


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Accepted: results are those of the one implementation, which never holds all scores at once.

    AssertionError for what is no SDPBackend.
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError(f"Backend must be an instance of SDPBackend, but got {chosen}")
    yield
