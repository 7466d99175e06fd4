"""Python's multiprocessing, which tensors pass through as copies, and `spawn`."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing.connection import wait as _wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
]
__all__ += multiprocessing.__all__


class ProcessRaisedException(Exception):
    """One of the processes that spawn started ended with an error."""


def get_all_sharing_strategies() -> set[str]:
    """One: tensors are copied."""
    return {"copy"}


def get_sharing_strategy() -> str:
    """'copy'."""
    return "copy"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted and ignored: tensors travel as copies, which needs no file descriptors and no shared files."""


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Runs `fn(i, *args)` in nprocs new processes and waits for them; without join, gives the list of processes.

    ProcessRaisedException as soon as one of them fails; the others are ended.
    """
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    running = {process.sentinel: i for i, process in enumerate(processes)}
    failed = None
    while running and failed is None:
        for sentinel in _wait(running):
            i = running.pop(sentinel)
            processes[i].join()
            if failed is None and processes[i].exitcode:
                failed = i
    if failed is not None:
        for i in running.values():
            processes[i].terminate()
            processes[i].join()
        raise ProcessRaisedException(
            f"spawn: process {failed} ended with code {processes[failed].exitcode}; its traceback stands on stderr"
        )
    return None
