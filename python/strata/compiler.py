"""What programs say to PyTorch's compiler. Nothing is compiled in this version, so the marks change nothing."""

from __future__ import annotations

from contextlib import nullcontext

from strata import compile as compile  # noqa: A004

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, or a decorator that gives it: a mark for a compiler."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """What it is given: a mark for a compiler."""
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """The function itself: a mark for a compiler."""
    return fn


def is_compiling() -> bool:
    """False: nothing is being compiled."""
    return False


def is_dynamo_compiling() -> bool:
    """False: nothing is being compiled."""
    return False


def is_exporting() -> bool:
    """False: nothing is being exported."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """No backends."""
    return []


def reset() -> None:
    """Forgets what was compiled: nothing was."""


def set_stance(stance: str = "default", **_: Any) -> Any:
    """A context that changes nothing."""
    return nullcontext()
