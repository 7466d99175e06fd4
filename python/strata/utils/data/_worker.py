"""What runs in a worker process: it answers each task with a batch, an error or "end" until it is told to stop."""

import functools
import os
import random

import strata
from strata.utils.data._collate import default_collate, stacks_tensors
from strata.utils.data.dataset import take_batch

__all__ = ["WorkerInfo", "get_worker_info"]

_info = None


class WorkerInfo:
    """Facts about this worker: `id`, `num_workers`, `seed` (base seed + id) and its copy of the `dataset`."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


def get_worker_info():
    """The WorkerInfo of the DataLoader worker that this process is, None in any other process."""
    return _info


class _KeyErrorText(str):
    # KeyError shows the repr of its argument, in which a traceback would be one long line.
    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again in another process."""

    def __init__(self, error, where):
        import traceback

        self.kind = type(error)
        self.text = "".join(traceback.format_exception(error))
        self.where = where

    def __reduce__(self):
        # The type may be one that the other side cannot import; it is looked up there, with RuntimeError in reserve.
        return _unpack_exception, (self.kind.__module__, self.kind.__qualname__, self.text, self.where)

    def reraise(self):
        """Raises an exception of the same type, whose text holds the original traceback."""
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            text = _KeyErrorText(text)
        try:
            error = self.kind(message=text) if getattr(self.kind, "message", None) else self.kind(text)
        except Exception:  # noqa: BLE001 - its constructor wants other arguments
            error = RuntimeError(text)
        raise error from None


def _unpack_exception(module, name, text, where):
    import importlib

    wrapped = ExceptionWrapper.__new__(ExceptionWrapper)
    wrapped.text, wrapped.where = text, where
    try:
        kind = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
    except (ImportError, AttributeError):
        kind = type(name.rsplit(".", 1)[-1], (RuntimeError,), {})
    wrapped.kind = kind
    return wrapped


def batch_seed(base, index):
    """Seed of one batch: the same whichever worker makes it."""
    return (base + (index + 1) * 0x9E3779B97F4A7C15) % 2**63


@functools.cache
def numpy_module():
    """NumPy where it is installed, loaded or not: a dataset that imports it later must find it seeded."""
    try:
        import numpy

        return numpy
    except ImportError:
        return None


def seed_everything(seed):
    """Seeds strata on the CPU, `random`, and NumPy where there is one."""
    strata.default_generator.manual_seed(seed)
    random.seed(seed)
    if numpy_module() is not None:
        numpy_module().random.seed(seed % 2**32)


class MapFetcher:
    """Batches of a dataset with indices."""

    def __init__(self, dataset, batched, collate):
        self.dataset, self.batched, self.collate = dataset, batched, collate
        self.gathers = batched and collate is default_collate

    def fetch(self, index):
        try:
            if not self.batched:
                return self.collate(self.dataset[index])
            if self.gathers and stacks_tensors():
                batch = take_batch(self.dataset, index)
                if batch is not None:
                    return batch
            at_once = getattr(self.dataset, "__getitems__", None)
            samples = [self.dataset[i] for i in index] if at_once is None else at_once(index)
            return self.collate(samples)
        except StopIteration as stop:
            # It would end the pass early without a word.
            raise RuntimeError(f"DataLoader: the dataset raised StopIteration for index {index}") from stop


class StreamFetcher:
    """Batches of an iterable dataset; `index` is their size. StopIteration at the end."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.samples = iter(dataset)
        self.batched, self.collate, self.drop_last = batched, collate, drop_last

    def fetch(self, index):
        if not self.batched:
            return self.collate(next(self.samples))
        samples = []
        for sample in self.samples:
            samples.append(sample)
            if len(samples) == index:
                break
        if not samples or (self.drop_last and len(samples) < index):
            raise StopIteration
        return self.collate(samples)


def make_fetcher(job):
    """The fetcher of a job, the dict that a DataLoader sends to its workers."""
    if job["stream"]:
        return StreamFetcher(job["dataset"], job["batched"], job["collate"], job["drop_last"])
    return MapFetcher(job["dataset"], job["batched"], job["collate"])


def run(worker, conn, foreign, shipment, inline_limit):
    """Body of worker number `worker`. `foreign`: inherited connections to close.

    Receives (base seed,) at the start of a pass and (batch number, index) per batch, until the connection closes;
    sends (batch number, "data" | "error" | "end", value).
    """
    import signal
    import threading

    from strata.utils.data import _transport

    threading.Thread(target=_leave_with_parent, daemon=True).start()
    # An interrupt from the keyboard reaches every process; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in foreign:
        other.close()
    strata.set_num_threads(1)
    state = _Worker(worker, shipment.obj)
    try:
        while True:
            task = _transport.receive(conn)
            if len(task) == 1:
                state.start(*task)
            else:
                _answer(conn, (task[0], *state.make(*task)), worker, inline_limit)
    except (EOFError, ConnectionError):
        pass  # the parent has gone or wants no more
    conn.close()


def _leave_with_parent():
    """Ends this process when the parent ends, however that happens and whatever a sample is doing."""
    from multiprocessing import connection, parent_process

    connection.wait([parent_process().sentinel])
    os._exit(1)


def _answer(conn, answer, worker, inline_limit):
    from strata.utils.data import _transport

    try:
        _transport.send(conn, answer, inline_limit)
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001 - the batch cannot be pickled
        _transport.send(conn, (answer[0], "error", _wrapped(error, worker)), inline_limit)


def _wrapped(error, worker):
    return ExceptionWrapper(error, f"in DataLoader worker process {worker}")


class _Worker:
    def __init__(self, worker, job):
        self.worker, self.job = worker, job
        self.fetcher = self.error = None
        self.ended = False
        self.set_up = False

    def start(self, base_seed):
        """Begins a pass over the dataset."""
        global _info
        self.base_seed = base_seed
        self.ended = False
        self.fetcher = None
        if self.set_up:
            _info.seed = base_seed + self.worker
            return
        self.set_up = True
        seed = base_seed + self.worker
        seed_everything(seed)
        _info = WorkerInfo(self.worker, self.job["num_workers"], seed, self.job["dataset"])
        try:
            if self.job["worker_init_fn"] is not None:
                self.job["worker_init_fn"](self.worker)
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            self.error = _wrapped(error, self.worker)

    def make(self, number, index):
        if self.error is not None:
            error, self.error = self.error, None
            return "error", error
        if self.ended:
            return "end", None
        try:
            if self.job["worker_init_fn"] is None:
                # A worker_init_fn has seeded as it likes.
                seed_everything(batch_seed(self.base_seed, number))
            if self.fetcher is None:
                self.fetcher = make_fetcher(self.job)
            return "data", self.fetcher.fetch(index)
        except StopIteration:
            self.ended = True
            return "end", None
        except Exception as error:  # noqa: BLE001 - raised again in the parent
            return "error", _wrapped(error, self.worker)
