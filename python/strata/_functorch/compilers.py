"""How compilers of graphs say what they give."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["make_boxed_compiler", "make_boxed_func", "nop"]


def make_boxed_func(f: Callable) -> Callable:
    """f, called with a list of its arguments."""

    def boxed(args: list) -> Any:
        return f(*args)

    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results are called with a list."""

    def compile(gm: Any, example_inputs: list) -> Callable:  # noqa: A001
        made = compiler(gm, example_inputs)
        return made if getattr(made, "_boxed_call", False) else make_boxed_func(made)

    return compile


def nop(gm: Any, example_inputs: list) -> Any:
    """The compiler that changes nothing."""
    return gm


def called_with_list(made: Callable) -> Callable:
    """What a compiler gave, as a function of a list."""
    if not callable(made):
        raise TypeError(f"aot_autograd: a compiler must return a function of the graph's inputs, got {type(made).__name__}")
    return made if getattr(made, "_boxed_call", False) else make_boxed_func(made)
