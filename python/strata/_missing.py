"""Stand-ins for names that PyTorch has and this package has not: they load, and say so with the way out when used.

A program that only mentions such a name, in an import or an isinstance, still runs.
"""

from __future__ import annotations

import functools
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


def missing_function(place: str, name: str, way_out: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{place}.{name} is not provided: {way_out}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = place
    refuse.__doc__ = f"Not provided: {way_out}."
    return refuse


def missing_class(place: str, name: str, way_out: str, base: type = object) -> type:
    """A class whose construction raises NotImplementedError."""
    body = {"__init__": missing_function(place, name, way_out), "__module__": place}
    return type(name, (base,), {**body, "__doc__": f"Not provided: {way_out}."})


def missing_decorator(place: str, name: str, way_out: str) -> Callable[..., Callable]:
    """A decorator that leaves a module importable: the function that it decorates raises when it is called."""

    def decorate(function: Any = None, *args: Any, **kwargs: Any) -> Callable:
        if not isinstance(function, (types.FunctionType, types.MethodType)):
            raise NotImplementedError(f"{place}.{name} is not provided: {way_out}")
        return functools.wraps(function)(missing_function(place, name, way_out))

    decorate.__name__ = decorate.__qualname__ = name
    decorate.__module__ = place
    decorate.__doc__ = f"Not provided: {way_out}."
    return decorate
