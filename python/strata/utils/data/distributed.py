"""DistributedSampler: each process sees its own share of the dataset."""

import itertools

import strata
from strata.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index from `rank` on, of the same (shuffled) order in all processes.

    Args:
        num_replicas, rank: by default those of the process group.
        shuffle: a new order per epoch, from seed + epoch; call `set_epoch` before each pass.
        drop_last: leave out the tail that does not divide evenly, instead of repeating the first samples.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = strata.distributed.get_world_size() if num_replicas is None else num_replicas
        rank = strata.distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank must lie in [0, {num_replicas - 1}], got {rank}")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed

    @property
    def num_samples(self):
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    @property
    def total_size(self):
        return self.num_samples * self.num_replicas

    def __iter__(self):
        count = len(self.dataset)
        order = range(count)
        if self.shuffle:
            generator = strata.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = strata.randperm(count, generator=generator).tolist()
        padded = itertools.islice(itertools.cycle(order), self.total_size)
        return itertools.islice(padded, self.rank, None, self.num_replicas)

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Number of the pass that comes next; it decides the order."""
        self.epoch = epoch
