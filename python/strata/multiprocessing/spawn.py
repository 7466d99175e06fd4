"""spawn: one function in several new processes, whose first error ends them all."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing.connection import wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """One of the processes ended with an error. error_index: which; error_pid: its process id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = self.error_pid = pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the text has the traceback."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or by exit(). exit_code; signal_name, where it was one."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable, i: int, args: tuple, error_file: str) -> None:
    """What each process does: fn(i, *args), and the traceback into a file where it raises."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has it, too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """The processes that spawn(join=False) started."""

    def __init__(self, processes: list, error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one ends. True when all have ended well; the others are ended where one failed, and its error raises:
        ProcessRaisedException or ProcessExitedException. grace_period: seconds that the others have to end by themselves."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if failed is None and self.processes[index].exitcode:
                failed = index
        if failed is None:
            if not self.sentinels:
                self._remove_files()
            return not self.sentinels
        end = time.monotonic() + (grace_period or 0.0)
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()) if grace_period else 0.0)
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return False

    def _raise(self, index: int) -> None:
        process, path = self.processes[index], self.error_files[index]
        try:
            with open(path, "rb") as file:
                text = pickle.load(file)
        except (OSError, EOFError):
            text = None
        self._remove_files()
        if text is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)

    def _remove_files(self) -> None:
        for path in self.error_files:
            if os.path.exists(path):
                os.unlink(path)


class SpawnContext(ProcessContext):
    """A ProcessContext of processes that were started anew."""


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs `fn(i, *args)` in nprocs new processes and waits for them; without join, gives them as a ProcessContext."""
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="strata-spawn-", suffix=".pickle")
        os.close(handle)
        os.unlink(path)
        process = context.Process(target=_run, args=(fn, i, args, path), daemon=daemon)
        process.start()
        files.append(path)
        processes.append(process)
    started = SpawnContext(processes, files) if start_method == "spawn" else ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> Any:
    """Runs `fn(i, *args)` in nprocs new processes and waits for them; without join, gives them as a ProcessContext.

    ProcessRaisedException with the traceback as soon as one of them raises, ProcessExitedException where one ends otherwise
    than well; the others are ended.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
