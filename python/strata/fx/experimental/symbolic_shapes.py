"""Questions about sizes by PyTorch's names. Sizes are ints, or, while a program for many sizes is captured, numbers that note what they
are asked; so each question has its answer when its argument is computed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode", "free_symbols", "guard_or_false", "guard_or_true", "guard_size_oblivious",
    "statically_known_true", "sym_eq",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """Not raised: for `except` clauses."""


def guard_or_false(a: Any) -> bool:
    """bool(a)."""
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two sizes, or two sequences of them, are equal."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return bool(x == y)


def free_symbols(val: Any) -> set[str]:
    """The numbers of a capture in a value or a nest of some, as texts; none in ints."""
    from strata._bytecode.sizes import syms

    return {found.text for found in syms(val)}
