"""Switches of gradient recording, each a context manager and a decorator: no_grad, enable_grad, set_grad_enabled,
inference_mode. They hold for the thread that enters them.
"""

from __future__ import annotations

from strata import _C

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

_GENERATOR = 0x20  # inspect.CO_GENERATOR; that module takes long to import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self


def _wrap_generator(fresh: Callable, function: Callable) -> Callable:
    """The generator function with the mode held while its body runs, and not while it waits."""
    from functools import wraps  # which takes longer to import than the rest of this package

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        body = function(*args, **kwargs)
        with fresh():
            try:
                item = next(body)
            except StopIteration as stop:
                return stop.value
        while True:
            try:
                sent = yield item
            except GeneratorExit:
                with fresh():
                    body.close()
                raise
            except BaseException as error:
                with fresh():
                    try:
                        item = body.throw(error)
                    except StopIteration as stop:
                        return stop.value
            else:
                with fresh():
                    try:
                        item = body.send(sent)
                    except StopIteration as stop:
                        return stop.value

    return wrapper


class _DecoratorContextManager:
    """A context manager that decorates functions, generators and classes' methods with a fresh copy of itself."""

    __slots__ = ("before",)

    def __call__(self, function: Callable) -> Callable:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return _wrap_generator(self.clone, function)
        from functools import wraps

        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return wrapper

    def clone(self) -> Self:
        return type(self)()


class _Switch(_DecoratorContextManager):
    """Sets gradient mode to `mode` on entry and puts back what was on exit."""

    __slots__ = ()
    mode: bool

    def __new__(cls, function: Callable | None = None) -> Any:
        made = super().__new__(cls)
        return made if function is None else made(function)

    def __enter__(self) -> None:
        self.before = _C.is_grad_enabled()
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *error: object) -> None:
        _C._set_grad_enabled(self.before)


class no_grad(_Switch):
    """Nothing is recorded for backward: results have requires_grad=False."""

    __slots__ = ()
    mode = False


class enable_grad(_Switch):
    """Operators are recorded, also inside of no_grad."""

    __slots__ = ()
    mode = True


class set_grad_enabled(_DecoratorContextManager):
    """Turns recording on or off, at once as a function, or for a block as a context manager."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.before = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)

    def __call__(self, function: Callable) -> Callable:
        # As a decorator it must not leave the mode changed behind.
        _C._set_grad_enabled(self.before)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *error: object) -> None:
        _C._set_grad_enabled(self.before)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self) -> Self:
        return type(self)(self.mode)


class inference_mode(_DecoratorContextManager):
    """no_grad without version counters: results can never take part in a graph."""

    __slots__ = ("mode",)

    def __new__(cls, mode: bool | Callable = True) -> Any:
        if callable(mode):
            return cls(True)(mode)
        made = super().__new__(cls)
        made.mode = mode
        return made

    def __enter__(self) -> None:
        _C._enter_inference_mode(self.mode)

    def __exit__(self, *error: object) -> None:
        _C._exit_inference_mode()

    def clone(self) -> Self:
        return type(self)(self.mode)
