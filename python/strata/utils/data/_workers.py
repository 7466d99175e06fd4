"""The worker processes of one pass (or, if they persist, of many) as the main process sees them.

Tasks go round the workers in turn and each worker answers in order, so the next batch always comes from a known
worker: batches arrive in the sampler's order without any sorting.
"""

import contextlib
import itertools
import os
import signal
import socket
import time
import weakref
from collections import deque
from multiprocessing import connection

from strata.utils.data import _transport, _worker

_JOIN_SECONDS = 3.0
# Unread messages of one worker must fit the connection's buffer, or both sides could wait to write.
_BUFFERED_BYTES = 64 * 1024
_MAX_IN_FLIGHT = 64


def _context(choice):
    import multiprocessing

    if choice is not None and not isinstance(choice, str):
        return choice
    context = multiprocessing.get_context(choice)  # None: the interpreter's own default, as programs expect
    if context.get_start_method() == "forkserver":
        from multiprocessing import forkserver

        # A server that has loaded strata starts workers in milliseconds; a list that the user has set stays.
        if forkserver._forkserver._preload_modules == ["__main__"]:
            context.set_forkserver_preload(["__main__", "strata.utils.data._worker"])
    return context


def _stop(processes, connections, owner):
    """Ends the workers; safe to call in a process that inherited this object by fork."""
    if os.getpid() != owner:
        return
    for conn in connections:
        # Closing is not enough: processes forked meanwhile hold the connection open too.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(conn.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
        conn.close()
    deadline = time.monotonic() + _JOIN_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


class WorkerPool:
    """`job`: the dict of `_worker.make_fetcher`, plus num_workers and worker_init_fn."""

    def __init__(self, job, context, prefetch, timeout, in_order):
        self.count = job["num_workers"]
        self.prefetch, self.timeout, self.in_order = prefetch, timeout, in_order
        self.connections, self.processes = [], []
        self.inline_limit = _BUFFERED_BYTES // min(max(prefetch, 2), _MAX_IN_FLIGHT)
        self._finalizer = weakref.finalize(self, _stop, self.processes, self.connections, os.getpid())
        self._launch(job, _context(context))
        self.outstanding = deque()
        self._turn = itertools.cycle(range(self.count))
        self.ended = set(range(self.count))
        self.broken = None

    def _launch(self, job, context):
        shipment = _transport.Shipment(job)
        forks = context.get_start_method() == "fork"
        try:
            for i in range(self.count):
                ours, theirs = context.Pipe(duplex=True)
                self.connections.append(ours)
                foreign = list(self.connections) if forks else []
                process = context.Process(
                    target=_worker.run, args=(i, theirs, foreign, shipment, self.inline_limit), daemon=True
                )
                process.start()
                theirs.close()
                self.processes.append(process)
        except Exception as error:
            self.close()
            error.add_note(
                f"DataLoader: a worker could not be started. With the start method {context.get_start_method()!r} the "
                "dataset, collate_fn and worker_init_fn are pickled, so they must be importable (no lambdas, no local "
                'classes); multiprocessing_context="fork" passes them on as they are.'
            )
            raise
        finally:
            shipment.close()

    def close(self):
        self._finalizer()

    # A pass

    def start(self, base_seed, tasks):
        """Begins a pass over (number, index) pairs: answers that a former one left are thrown away."""
        while self.outstanding:
            self._receive(self.outstanding.popleft()[1])
        self.ended.clear()
        self._turn = itertools.cycle(range(self.count))
        self._tasks = tasks
        for worker in range(self.count):
            self._send(worker, (base_seed,))
        self._fill()

    def next(self):
        """The next batch, or the exception of its worker. StopIteration at the end of the pass."""
        if self.broken is not None:
            raise RuntimeError(self.broken)
        while self.outstanding:
            worker = self._pick()
            _, kind, value = self._receive(worker)
            if kind == "end":
                self.ended.add(worker)
            self._fill()
            if kind == "data":
                return value
            if kind == "error":
                value.reraise()
        raise StopIteration

    def _fill(self):
        """Keeps every active worker supplied with `prefetch` tasks."""
        while len(self.outstanding) < (self.count - len(self.ended)) * min(self.prefetch, _MAX_IN_FLIGHT):
            task = next(self._tasks, None)
            if task is None:
                return
            worker = next(w for w in self._turn if w not in self.ended)
            self.outstanding.append((task[0], worker))
            self._send(worker, task)

    def _pick(self):
        """The worker to read from next; its task is taken off the list."""
        if self.in_order:
            return self.outstanding.popleft()[1]
        busy = {self.connections[w]: w for _, w in self.outstanding}
        ready = connection.wait(list(busy) + [self.processes[w].sentinel for w in busy.values()], self._wait_seconds())
        worker = next((w for conn, w in busy.items() if conn in ready), self.outstanding[0][1])
        self.outstanding.remove(next(entry for entry in self.outstanding if entry[1] == worker))
        return worker

    def _wait_seconds(self):
        return self.timeout or None

    # Messages

    def _send(self, worker, task):
        try:
            _transport.send(self.connections[worker], task, self.inline_limit)
        except ConnectionError:
            self._fail()

    def _receive(self, worker):
        conn = self.connections[worker]
        ready = connection.wait([conn, self.processes[worker].sentinel], self._wait_seconds())
        if not ready:
            self._break(f"DataLoader timed out after {self.timeout} seconds")
        try:
            # A worker may have answered before it died.
            if conn in ready or conn.poll(0):
                return _transport.receive(conn)
        except (EOFError, ConnectionError):
            pass
        return self._fail()

    def _break(self, text):
        """Ends the workers for good; any later call raises the same."""
        self.broken = text
        for process in self.processes:
            process.terminate()
        self.close()
        raise RuntimeError(text)

    def _fail(self):
        """Raises for the workers that have died."""
        ready = connection.wait([p.sentinel for p in self.processes], 1.0)
        for process in self.processes:
            if process.sentinel in ready:
                process.join(1.0)  # the sentinel fires a moment before the exit code is there
        dead = {p.pid: p.exitcode for p in self.processes if not p.is_alive()}
        reasons = ", ".join(_reason(code) for code in dict.fromkeys(dead.values()))
        self._break(
            f"DataLoader worker (pid(s) {', '.join(map(str, dead))}) exited unexpectedly: {reasons}. "
            "num_workers=0 shows an error of the dataset where it happens."
        )


def _reason(code):
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = ", perhaps for lack of memory" if name == "SIGKILL" else ""
        return f"killed by signal {name}{hint}"
    if code == 1:
        return (
            "exit code 1 (its traceback is above; a script that starts workers needs "
            "`if __name__ == '__main__':` around its main part)"
        )
    return f"exit code {code}"
