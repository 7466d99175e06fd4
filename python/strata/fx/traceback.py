"""Where new nodes come from: what passes that run a graph's nodes anew hand on of the old ones' meta."""

from __future__ import annotations

import contextlib
import copy
from _thread import _local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .node import Node

__all__ = ["get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta"]

# What a node's successors keep.
_KEPT = ("custom", "nn_module_stack", "original_aten", "quantization_tag", "source_fn_stack", "stack_trace", "torch_fn")


class _State(_local):
    meta: dict[str, Any] | None = None
    preserve = False


_state = _State()


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over meta."""
    return _state.preserve


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """In it, nodes that are made while another one runs take over what is kept of its meta."""
    before, _state.preserve = _state.preserve, enable
    try:
        yield
    finally:
        _state.preserve = before


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """In it, the node is the one that runs."""
    before = _state.meta
    if _state.preserve and node.meta:
        _state.meta = node.meta
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """The meta of the node that runs; {} where none does."""
    return _state.meta or {}


def kept_meta() -> dict[str, Any]:
    """What a new node takes over."""
    current = get_current_meta()
    return {key: copy.copy(current[key]) for key in _KEPT if key in current}
