"""Conditions that must hold: errors with a message that is made only when it is needed."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NO_MESSAGE = "Expected cond to be True, but got False."


def _raise(error: type[Exception], message: Callable[[], Any] | None) -> None:
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error(_NO_MESSAGE if message is None else str(message()))


def _held(cond: Any) -> bool:
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use _check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, (bool, strata.SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    return bool(cond)


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raises error_type(message()) where `cond` is False. TypeError for a condition that is no bool."""
    if not _held(cond):
        _raise(error_type, message)


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError(message()) where `cond` is False."""
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:  # noqa: A002
    """RuntimeError where `i` is negative, or more than `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_index(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """IndexError(message()) where `cond` is False."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """ValueError(message()) where `cond` is False."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """TypeError(message()) where `cond` is False."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """NotImplementedError(message()) where `cond` is False."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raises error_type(message()) where an element of a bool tensor is False. TypeError for what is none."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != strata.bool:
        raise TypeError(f"cond tensor must be of bools, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError(message()) where an element of a bool tensor is False."""
    _check_tensor_all_with(RuntimeError, cond, message)
