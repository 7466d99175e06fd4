"""strata.profiler under the name that PyTorch has for a part of it, with the older form of `profile`."""

from __future__ import annotations

import contextlib

from strata import _lazy
from strata import profiler as _profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [*_profiler.__all__, "emit_itt", "emit_nvtx"]
globals().update({name: getattr(_profiler, name) for name in _profiler.__all__ if name != "profile"})
__getattr__, __dir__ = _lazy.of(globals(), otherwise=lambda name: vars(_profiler)[name])


class profile(_profiler.profile):  # noqa: N801 - PyTorch's name
    """strata.profiler.profile, of the CPU. enabled: without it the block runs as it is. use_...: which devices, which changes nothing."""

    def __init__(self, enabled: bool = True, *, experimental_config: Any = None, **options: Any) -> None:
        super().__init__(**{name: value for name, value in options.items() if not name.startswith("use_")})
        self.enabled = enabled

    def __enter__(self) -> Any:
        return super().__enter__() if self.enabled else self

    def __exit__(self, *error: Any) -> Any:
        return super().__exit__(*error) if self.enabled else None


@contextlib.contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """Marks for an outer tool: nothing with enabled=False, NotImplementedError else."""
    if enabled:
        raise NotImplementedError("emit_nvtx: this version writes no marks for outer tools; strata.profiler.profile records what runs")
    yield


@contextlib.contextmanager
def emit_itt(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """As emit_nvtx."""
    if enabled:
        raise NotImplementedError("emit_itt: this version writes no marks for outer tools; strata.profiler.profile records what runs")
    yield
