"""DataLoader: batches of a dataset, in this process or in workers."""

import itertools
import random
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager

import strata
from strata.utils.data import _worker
from strata.utils.data._collate import default_collate, default_convert
from strata.utils.data._worker import get_worker_info
from strata.utils.data.dataset import IterableDataset, draws_nothing
from strata.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_PLAIN_COLLATE = (default_collate, default_convert)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless(Sampler):
    """Stands for the sampler of a stream, which has no indices to choose from."""

    def __init__(self, item=None):
        self.item = item

    def __iter__(self):
        return itertools.repeat(self.item)


class DataLoader:
    """Iterates over batches of `dataset`.

    Args:
        batch_size: samples per batch; None hands out single samples.
        shuffle: a new random order each pass.
        sampler, batch_sampler: the indices, or the lists of indices, to use instead.
        num_workers: processes that load; 0 loads in this one.
        collate_fn: makes a batch of a list of samples (default_collate; default_convert without batching).
        pin_memory: puts the batch into pinned memory where an accelerator is present.
        drop_last: leaves out a last batch that is not full.
        timeout: seconds to wait for a worker's batch; 0 waits for ever.
        worker_init_fn: called with the number of the worker when it starts.
        multiprocessing_context: "fork", "forkserver", "spawn" or a context of `multiprocessing`; by default that of
            `multiprocessing.get_context()`. Under "fork" datasets and functions need not be picklable.
        generator: source of the order and of the seeds; by default the global one.
        prefetch_factor: batches that each worker has under way (2).
        persistent_workers: workers stay for the next pass.
        in_order: False hands out batches as they become ready.

    Before each batch the random number generators (strata's, `random`, NumPy's) are seeded from the pass's base seed
    and the batch's number, in the worker or, put back afterwards, in this process: random transforms give the same
    batches at any `num_workers`. With a `worker_init_fn` the seeds of workers are left to it.

    `state_dict()` tells where the current pass stands, `load_state_dict()` lets the next pass begin there.

    Raises:
        ValueError: arguments that exclude each other.
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        stream = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        _check_sampling(stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order
        self.drop_last = drop_last
        self.persistent_workers = persistent_workers
        if sampler is None:
            if stream:
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._stream = stream
        self._pool = None
        self._progress = _Progress()
        self._resume = None
        self._promised = None
        self.__initialized = True  # programs that replace what is fixed put it to False meanwhile: _DataLoader__initialized

    def __class_getitem__(cls, item):
        return cls

    def __setattr__(self, name, value):
        if name in _FIXED and self.__dict__.get("_DataLoader__initialized"):
            raise ValueError(f"{name} attribute should not be set after DataLoader is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        if self._stream:
            return _Endless(self.batch_size)
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        return self._get_iterator()

    def _get_iterator(self):
        return (_MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter)(self)

    def __len__(self):
        """Number of batches; for a stream, what its `__len__` promises."""
        if not self._stream:
            return len(self._index_sampler)
        count = self._promised = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def _job(self):
        return {
            "dataset": self.dataset,
            "collate": self.collate_fn,
            "batched": self._auto_collation,
            "stream": self._stream,
            "drop_last": self.drop_last,
            "num_workers": self.num_workers,
            "worker_init_fn": self.worker_init_fn,
        }

    def _take_pool(self):
        """Workers for a pass: those that persist, or new ones."""
        if self._pool is not None and self._pool.broken is None:
            return self._pool
        from strata.utils.data._workers import WorkerPool

        pool = WorkerPool(self._job(), self.multiprocessing_context, self.prefetch_factor, self.timeout, self.in_order)
        self._pool = pool if self.persistent_workers else None
        return pool

    def _generators(self):
        """The generators that decide the order, each once."""
        owners = (self, self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None))
        found = {id(g): g for g in (getattr(owner, "generator", None) for owner in owners) if g is not None}
        return list(found.values())

    def state_dict(self):
        """Where the current pass stands: state of the generators at its start, and the batches handed out.

        Between passes the count is 0. Orders drawn from other sources than strata's generators are not covered.
        """
        if self._resume is not None:
            return self._resume
        if self._progress.finished:
            return {"batches": 0}
        return {"batches": self._progress.batches, "start": self._progress.start}

    def load_state_dict(self, state):
        """The next pass begins where `state` was taken; batches before are skipped (a stream makes them anew)."""
        self._resume = state if "start" in state else None


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, context):
    if num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must not be negative, got {num_workers}; 0 loads in this process")
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout must not be negative, got {timeout}")
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(f"DataLoader: prefetch_factor must be positive, got {prefetch_factor}")
    if num_workers == 0:
        for name, given in (
            ("prefetch_factor", prefetch_factor is not None),
            ("persistent_workers", persistent_workers),
            ("multiprocessing_context", context is not None),
            ("timeout", timeout != 0),
        ):
            if given:
                raise ValueError(f"DataLoader: {name} concerns worker processes; it needs num_workers > 0")
    if isinstance(context, str):
        import multiprocessing

        if context not in multiprocessing.get_all_start_methods():
            known = multiprocessing.get_all_start_methods()
            raise ValueError(f"DataLoader: multiprocessing_context must be one of {known}, got {context!r}")
    elif context is not None and not hasattr(context, "Process"):
        raise TypeError(
            f"DataLoader: multiprocessing_context must be a start method or a context, got {type(context).__name__}"
        )


def _check_sampling(stream, batch_size, shuffle, sampler, batch_sampler, drop_last):
    if stream:
        for name, given in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if given is not None and given is not False:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


class _Progress:
    """How far a pass is; kept by the loader, which must not keep the pass and its workers alive."""

    def __init__(self, start=None):
        self.start = start
        self.batches = 0
        self.finished = start is None


class _BaseDataLoaderIter:
    """One pass over the loader's dataset."""

    def __init__(self, loader):
        self.loader = loader
        self.pool = None
        self.pin = loader.pin_memory and _pinning()
        resume, loader._resume = loader._resume, None
        skip = resume["batches"] if resume else 0
        with _generators_at(loader, resume):
            self.progress = loader._progress = _Progress(_generator_states(loader))
            seed = strata.empty((), dtype=strata.int64).random_(generator=loader.generator)
            self.base_seed = int(seed.item())
            indices = iter(loader._index_sampler)
            if resume is not None and not loader._stream:
                # One more is drawn now, while the generators stand as they stood then.
                following = list(itertools.islice(indices, skip, skip + 1))
                indices = itertools.chain(following, indices)
                self.progress.batches = skip
        tasks = enumerate(indices, self.progress.batches)
        if loader.num_workers:
            self.pool = loader._take_pool()
            self.pool.start(self.base_seed, tasks)
        else:
            self.tasks, self.fetcher = tasks, None
            self.draws_nothing = draws_nothing(loader.dataset) and loader.collate_fn in _PLAIN_COLLATE
            if self.draws_nothing:
                self.fetcher = _worker.make_fetcher(loader._job())
        while self.progress.batches < skip:
            # A stream cannot jump.
            next(self)

    def __iter__(self):
        return self

    @property
    def _index_sampler(self):
        return self.loader._index_sampler

    def __len__(self):
        return len(self.loader)

    def __next__(self):
        try:
            data = self._fetch() if self.pool is None else self.pool.next()
        except StopIteration:
            self._finish()
            raise
        self.progress.batches += 1
        self._check_promise()
        return _pinned(data) if self.pin else data

    def _fetch(self):
        number, index = next(self.tasks)
        if self.draws_nothing:
            return self.fetcher.fetch(index)
        with _own_randomness(_worker.batch_seed(self.base_seed, number)):
            if self.fetcher is None:
                self.fetcher = _worker.make_fetcher(self.loader._job())
            return self.fetcher.fetch(index)

    def _finish(self):
        self.progress.finished = True
        if self.pool is not None and not self.loader.persistent_workers:
            self.pool.close()

    def _check_promise(self):
        promised, size = self.loader._promised, self.loader.batch_size or 1
        if self.loader._stream and promised is not None and self.progress.batches == -(-promised // size) + 1:
            hint = ""
            if self.pool is not None:
                hint = "; each worker iterates a whole copy unless __iter__ asks get_worker_info() for its share"
            warnings.warn(
                f"DataLoader: the stream promised {promised} samples (its __len__), and more have come{hint}",
                stacklevel=3,
            )


def _generator_states(loader):
    return {"default": strata.get_rng_state(), "generators": [g.get_state() for g in loader._generators()]}


@contextmanager
def _generators_at(loader, resume):
    """With `resume`, the generators stand as at the start of that pass; the default one is put back afterwards."""
    if resume is None:
        yield
        return
    start, now = resume["start"], strata.get_rng_state()
    generators = loader._generators()
    if len(generators) != len(start["generators"]):
        raise ValueError(
            f"DataLoader.load_state_dict: the state is of a loader with {len(start['generators'])} generators, this "
            f"one has {len(generators)}"
        )
    for generator, state in zip(generators, start["generators"], strict=True):
        generator.set_state(state)
    strata.set_rng_state(start["default"])
    try:
        yield
    finally:
        strata.set_rng_state(now)


@contextmanager
def _own_randomness(seed):
    """Seeds every generator for one batch and puts them back."""
    numpy = _worker.numpy_module()
    states = strata.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()
    _worker.seed_everything(seed)
    try:
        yield
    finally:
        strata.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.random.set_state(states[2])


def _pinning():
    if strata.accelerator.is_available():
        return True
    warnings.warn("DataLoader: pin_memory=True has no effect, as no accelerator is present", stacklevel=4)
    return False


def _pinned(data):
    """`data` with every tensor in pinned memory."""
    if isinstance(data, strata.Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return type(data)({key: _pinned(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(_pinned, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return type(data)(map(_pinned, data))
    return data


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """A pass in this process."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A pass of worker processes."""
