"""What tracing changes while it runs, and puts back: names of functions that are recorded, calls and attributes of modules."""

from __future__ import annotations

import builtins
import functools

from strata._patching import Patches, is_put

from .node import map_aggregate
from .proxy import Proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

# Functions that `wrap` marked: the globals that they are called from, by their id and the name.
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
wrapped_methods: list[tuple[type, str]] = []


def find_proxy(*values: Any) -> Proxy | None:
    """A proxy somewhere in the arguments."""
    found: list[Proxy] = []
    map_aggregate(values, lambda v: found.append(v) if isinstance(v, Proxy) else None)
    return found[0] if found else None


def recorded_function(function: Callable) -> Callable:
    """The function, whose calls with proxies become nodes."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    wrapped.__fx_recorded__ = function
    return wrapped


def recorded_method(cls: type, name: str) -> Callable:
    """The method, whose calls with proxies become nodes."""
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    wrapped.__fx_recorded__ = method
    return wrapped


class Patcher(Patches):
    """What is changed while a function is traced."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[int] = set()

    def marked(self) -> None:
        """Records calls of what `wrap` marked."""
        for (_, name), variables in list(wrapped_functions.items()):
            function = variables.get(name) or getattr(builtins, name, None)
            if function is not None:
                self._record(variables, name, function)
        for cls, name in wrapped_methods:
            self.put(cls, name, lambda cls=cls, name=name: recorded_method(cls, name))

    def functions_in(self, variables: dict[str, Any], ids: Collection[int]) -> None:
        """Records calls of the functions with these ids by the names that they have there."""
        if id(variables) in self._seen:
            return
        self._seen.add(id(variables))
        for name, value in list(variables.items()):
            if not name.startswith("_") and callable(value) and id(getattr(value, "__fx_recorded__", value)) in ids:
                self._record(variables, name, value)

    def _record(self, variables: dict[str, Any], name: str, function: Callable) -> None:
        if not hasattr(function, "__fx_recorded__") or is_put(variables, name):
            self.put(variables, name, lambda: recorded_function(function))
