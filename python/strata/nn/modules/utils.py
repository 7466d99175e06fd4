"""Sizes given as one number or one per dimension."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Size = int | tuple[int, ...] | list[int]


def _ntuple(n: int, name: str) -> Callable[[Any], tuple]:
    def parse(value: Any) -> tuple:
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """Values from last to first, each n times: sizes per dimension as pad() wants them."""
    return tuple(value for value in reversed(values) for _ in range(n))
