"""Python's multiprocessing, through which tensors pass as shared memory: the receiver sees the sender's numbers, and
writes of either are seen by the other. `spawn` runs a function in several processes."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
__all__ += multiprocessing.__all__

init_reductions()
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """The one that was set; at first 'file_descriptor'."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Takes PyTorch's two names. Memory is shared by descriptors of files without a name in both cases: nothing is left
    behind however a process ends. ValueError for other names."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(f"set_sharing_strategy: expected one of {sorted(get_all_sharing_strategies())}, got {new_strategy!r}")
    _strategy = new_strategy
