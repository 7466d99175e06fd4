"""What functions and types are called in the text of a graph."""

from __future__ import annotations

import builtins
import types

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def type_name(obj: Any) -> str:
    """A type as annotations write it, with its module; other objects as they print."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return obj.__qualname__ if obj.__module__ == "builtins" else f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def is_from_strata(obj: Any) -> bool:
    """Whether the object is found under its full name once strata is imported."""
    module = getattr(obj, "__module__", None)
    if module is not None:
        return module == "strata" or module.startswith("strata.")
    name = getattr(obj, "__name__", None)
    return name is not None and name != "strata" and getattr(strata, name, None) is obj


def qualified_name(function: Callable) -> str:
    """The name under which code finds a function: "strata.relu", "getattr", "__main__.f".

    RuntimeError for a lambda whose source is not there, and for what has neither a module nor a place in strata.
    """
    if isinstance(function, strata.ops.OpOverloadPacket):
        return f"strata.ops.{function}"
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return name
    descriptor = isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType))
    if (descriptor and function is getattr(strata.Tensor, name, None)) or (
        function.__module__ == "strata._tensor" and function.__qualname__ == f"Tensor.{name}"
    ):
        return f"strata.Tensor.{name}"
    module = function.__module__
    if name == "<lambda>":
        import inspect

        try:  # a lambda that a name was given to is found by that name
            name = inspect.getsource(function).split("=")[0].strip()
        except (OSError, TypeError) as error:
            raise RuntimeError("Unable to represent lambda") from error
    if module is None:
        if getattr(strata, name, None) is not function:
            raise RuntimeError(f"cannot find module for {function}")
        module = "strata"
    return f"{module}.{name}"


def target_name(target: Any) -> str:
    """What a node calls, as lines of a graph show it: "operator.add", "builtins.getattr", "strata.relu"."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    name = getattr(target, "__name__", None)
    if name is not None and module in ("builtins", "_operator"):
        return f"{module.lstrip('_')}.{name}"
    return qualified_name(target)
