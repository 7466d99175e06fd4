"""jit.trace; and the names of PyTorch's compiler of source text, which is not here: what is scripted runs as Python."""

from __future__ import annotations

import builtins
import sys
from typing import Final as Final

from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NAMES = {
    "_files": "load save",
    "_freeze": "freeze optimize_for_inference",
    "_module": "RecursiveScriptModule ScriptFunction ScriptModule TopLevelTracedModule TracedModule trace trace_module",
    "_script": "fork script script_method wait",
    "_trace": "TracerWarning TracingCheckError",
}
__getattr__, __dir__ = _lazy.of(globals(), _NAMES)


class Error(RuntimeError):
    """What a compiled function would raise."""


def is_scripting() -> bool:
    """False: nothing is being compiled."""
    return False


def is_tracing() -> bool:
    """Whether a function is being traced."""
    tracing = sys.modules.get("strata.jit._trace")
    return tracing is not None and tracing.is_tracing()


def _overload(function: Callable) -> Callable:
    """The function itself: a signature for a compiler."""
    return function


_overload_method = _overload


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, or a decorator that gives it: a mark for a compiler."""
    return drop if callable(drop) else lambda function: function


def unused(function: Callable) -> Callable:
    """The function itself: a mark for a compiler."""
    return function


def export(function: Callable) -> Callable:
    """The function itself: a mark for a compiler."""
    return function


def interface(cls: type) -> type:
    """The class itself: a mark for a compiler."""
    return cls


def script_if_tracing(function: Callable) -> Callable:
    """The function itself: its operators are traced like others."""
    return function


_script_if_tracing = script_if_tracing


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value: a mark for a compiler."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Python's isinstance for the classes in target_type, one or a tuple."""
    return builtins.isinstance(obj, target_type)


class Attribute:
    """A value with the type that a compiler should give it."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value = value
        self.type = type
