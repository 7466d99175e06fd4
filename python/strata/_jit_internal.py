"""PyTorch's place for types and marks of its compiler of source text, which programs that copy its modules import from here."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from strata.jit import Final, export, ignore, is_scripting, unused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "List", "Optional", "Tuple", "Union",
    "boolean_dispatch", "export", "ignore", "is_scripting", "unused",
]  # fmt: skip


class _Broadcasting:
    """BroadcastingList2[int]: an int, or a list of two."""

    def __getitem__(self, kind: type) -> Any:
        return Union[kind, List[kind]]  # type: ignore[valid-type]  # noqa: UP006, UP007


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable, if_false: Callable, module_name: str, func_name: str
) -> Callable:
    """A function that calls one of two, as the argument of that name and position says."""

    def choose(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    choose.__name__, choose.__module__, choose.__doc__ = func_name, module_name, (if_false or if_true).__doc__
    return choose


def _overload(function: Callable) -> Callable:
    return function


_overload_method = _copy_to_script_wrapper = _overload
