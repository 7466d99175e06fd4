"""Datasets that worker processes can import."""

import os
import random
import signal
import time

import strata
from strata.utils.data import Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __init__(self, count=20, shape=()):
        self.count, self.shape = count, shape

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return strata.full(self.shape, float(i * i)), i


class Noisy(Squares):
    """Samples that draw from every generator."""

    def __getitem__(self, i):
        return strata.rand(2), random.random(), i


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.count) if info is None else range(info.id, self.count, info.num_workers))


class Whole(IterableDataset):
    """Forgets to share the work; promises its length."""

    def __len__(self):
        return 4

    def __iter__(self):
        return iter(range(4))


class Info(Squares):
    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.num_workers, info.dataset is self, strata.get_num_threads()


class Mixed(Squares):
    """Every way a sample can travel: large and small, strided, empty, half precision, text."""

    def __getitem__(self, i):
        return {
            "large": strata.full((9000,), i, dtype=strata.bfloat16),
            "strided": strata.arange(6).reshape(2, 3).t() + i,
            "empty": strata.zeros(0, 4),
            "flag": strata.tensor(i % 2 == 0),
            "text": f"sample {i}",
            "number": 0.5 * i,
        }


class Held(Squares):
    """Holds a large tensor, which workers share without a copy each."""

    def __init__(self, count=4):
        super().__init__(count)
        self.values = strata.arange(500_000, dtype=strata.float32)
        self.pid = os.getpid()

    def __getitem__(self, i):
        self.values[i] += 1  # of this process alone
        return self.values[i].item()


class Failing(Squares):
    def __init__(self, error, at=5):
        super().__init__(8)
        self.error, self.at = error, at

    def __getitem__(self, i):
        if i == self.at:
            raise self.error
        return i


class Dying(Squares):
    def __init__(self, how):
        super().__init__(8)
        self.how = how

    def __getitem__(self, i):
        if i == 5:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(3)
        return i


class Sleeping(Squares):
    def __getitem__(self, i):
        time.sleep(60)


class WithHistory(Squares):
    def __getitem__(self, i):
        return strata.ones(2, requires_grad=True) * 2


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def first_two_fail(worker):
    if worker < 2:
        raise ValueError(f"worker {worker} refuses")


def remember(worker):
    info = get_worker_info()
    info.dataset.count = 100 + worker


class Counted(Squares):
    def __getitem__(self, i):
        return self.count
