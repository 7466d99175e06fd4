"""__torch_function__: classes and modes that answer calls of strata's functions in their own way."""

from __future__ import annotations

import functools

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

# Contexts: calls on subclasses run as on plain tensors; the second switches modes off as well.
DisableTorchFunctionSubclass = _C.DisableTorchFunctionSubclass
DisableTorchFunction = _C.DisableTorchFunction

# Whether a mode is active or an argument's class has __torch_function__.
has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any) -> Any:
    """Asks the active mode, then the classes of `relevant_args`, for `public_api(*args, **kwargs)`.

    TypeError where all of them return NotImplemented.
    """
    return _C._handle_torch_function(public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: the function may be overridden; `dispatcher(*args, **kwargs)` gives the arguments that are asked."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(value: object) -> bool:
    """Whether the object is a tensor or of a class with __torch_function__."""
    return isinstance(value, _C.TensorBase) or hasattr(type(value), "__torch_function__")


def is_tensor_method_or_property(function: Callable) -> bool:
    """Whether the function is a method or attribute of Tensor."""
    from strata import Tensor

    name = getattr(function, "__name__", None)
    return name == "__get__" or (name is not None and getattr(Tensor, name, None) is function)


def get_default_nowrap_functions() -> set:
    """Functions whose results the default __torch_function__ leaves plain tensors."""
    from strata._tensor import _keeps_type

    return _keeps_type()


def resolve_name(function: Callable) -> str | None:
    """The public name of a function, such as 'strata.Tensor.add'; None for those that are not strata's."""
    import strata

    name = getattr(function, "__name__", None)
    if name is None:
        return None
    if getattr(strata.Tensor, name, None) is function:
        return f"strata.Tensor.{name}"
    if getattr(strata, name, None) is function:
        return f"strata.{name}"
    module = getattr(function, "__module__", None) or ""
    return f"{module}.{name}" if module.split(".")[0] == "strata" else None


class TorchFunctionMode:
    """A context whose `__torch_function__(func, types, args, kwargs)` gets every call of a strata function inside.

    While it handles one, the mode is off and the next outer one is asked. `func(*args, **kwargs)` goes on with the call.
    """

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a TorchFunctionMode must define __torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """PyTorch's old spelling of the constructor."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that does nothing."""

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    stack = _C._torch_function_modes()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return _C._torch_function_modes()


def _get_overloaded_args(relevant_args: Iterable[Any]) -> list[Any]:
    return _C._overloaded_args(tuple(relevant_args))


class enable_reentrant_dispatch:
    """Accepted for PyTorch's programs: handlers of __torch_dispatch__ may call operators on subclasses here anyway."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass
