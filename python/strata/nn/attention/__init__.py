"""Which implementation of scaled_dot_product_attention PyTorch should choose. There is one here.

bias: causal masks that know their corner. flex_attention: attention with scores that a function changes.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum

from strata import _lazy
from strata._device_words import attention_backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDPBackend", "sdpa_kernel"]
__getattr__, __dir__ = _lazy.of(globals(), parts="bias flex_attention")


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
