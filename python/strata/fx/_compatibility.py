"""PyTorch's mark of what its next versions keep, which programs that extend fx use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compatibility"]


def compatibility(is_backward_compatible: bool) -> Callable[[Callable], Callable]:
    """A decorator that notes it on a function or class as `_backward_compatible`."""

    def decorate(marked: Callable) -> Callable:
        marked._backward_compatible = is_backward_compatible
        return marked

    return decorate
