"""Sizes given as one number or one per dimension, and the number of layers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Size = int | tuple[int, ...] | list[int]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    def parse(value: Any) -> tuple:
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


_MOST_LAYERS = 1 << 16


def _check_layers(count: int) -> None:
    """Refuses a number of layers that would take hours to build, before the first is built."""
    if count > _MOST_LAYERS:
        raise ValueError(f"num_layers: expected at most {_MOST_LAYERS}, got {count}")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """Values from last to first, each n times: sizes per dimension as pad() wants them."""
    return tuple(value for value in reversed(values) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes the prefix off the names of a state dictionary, in place: "module." of one that was saved from a wrapper."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
                metadata[key[len(prefix) :]] = metadata.pop(key)
