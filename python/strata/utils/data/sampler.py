"""Samplers: iterables over the indices (or lists of indices) that a DataLoader asks its dataset for."""

import itertools

import strata

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler:
    """Subclasses define `__iter__`, and `__len__` where the number of items is known."""

    def __init__(self, data_source=None):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")


def _positive(value, name, where):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{where}: {name} should be a positive integer value, but got {name}={value}")


def _boolean(value, name, where, error=ValueError):
    if not isinstance(value, bool):
        raise error(f"{where}: {name} should be a boolean value, but got {name}={value}")


class SequentialSampler(Sampler):
    """0, 1, ... len(data_source) - 1."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in random order: permutations, or draws with `replacement`; `num_samples` of them (default: all).

    Without a generator each pass seeds its own from the default one, which thereby moves by one draw.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _boolean(replacement, "replacement", "RandomSampler", TypeError)
        _positive(self.num_samples, "num_samples", "RandomSampler")

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, count = len(self.data_source), self.num_samples
        if n == 0 < count:
            raise ValueError(f"RandomSampler: {count} samples of an empty data_source are asked for")
        generator = self.generator
        if generator is None:
            generator = strata.Generator()
            generator.manual_seed(int(strata.empty((), dtype=strata.int64).random_().item()))
        while count > 0:
            if self.replacement:
                # Drawn in small pieces, so that a long pass starts at once.
                piece = strata.randint(high=n, size=(min(count, 32),), dtype=strata.int64, generator=generator)
            else:
                piece = strata.randperm(n, generator=generator)
            yield from piece.tolist()[:count]
            count -= len(piece)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in strata.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` indices drawn with the given weights, which need not sum to 1."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _positive(num_samples, "num_samples", "WeightedRandomSampler")
        _boolean(replacement, "replacement", "WeightedRandomSampler")
        self.weights = strata.as_tensor(weights, dtype=strata.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"WeightedRandomSampler: weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = strata.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` items of another sampler; a shorter last one is dropped with `drop_last`."""

    def __init__(self, sampler, batch_size, drop_last):
        _positive(batch_size, "batch_size", "BatchSampler")
        _boolean(drop_last, "drop_last", "BatchSampler")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        items = iter(self.sampler)
        while batch := list(itertools.islice(items, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
