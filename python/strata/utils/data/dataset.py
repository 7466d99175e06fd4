"""Datasets: maps from an index to a sample, and streams of samples."""

import bisect
import itertools
import math
import warnings

import strata

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """A map from index to sample: subclasses define `__getitem__`, most samplers also need `__len__`.

    An optional `__getitems__(indices)` returns the samples of a whole batch at once.
    """

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(index)")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A stream: subclasses define `__iter__`. Each worker iterates its own copy; `get_worker_info` tells which."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__()")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Sample i is the tuple of `tensor[i]`; the first dimensions must agree (AssertionError)."""

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            sizes = [t.size(0) for t in tensors]
            raise AssertionError(
                f"Size mismatch between tensors: TensorDataset needs the same first dimension in all, got {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


def _samples(dataset, indices):
    """The samples at `indices`, at once where the dataset can."""
    at_once = getattr(dataset, "__getitems__", None)
    if at_once is None:
        return [dataset[i] for i in indices]
    items = at_once(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__ must return one sample per index: {len(indices)} asked for, "
            f"{len(items)} returned"
        )
    return items


class StackDataset(Dataset):
    """Several datasets side by side: sample i is a tuple (positional arguments) or dict (keywords) of their samples."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset: give the datasets either as positional or as keyword arguments")
        self.datasets = args or kwargs
        self._length = len(self._all()[0])
        if any(len(d) != self._length for d in self._all()):
            raise ValueError(f"StackDataset: the datasets differ in length: {[len(d) for d in self._all()]}")

    def _all(self):
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices):
        rows = zip(*(_samples(d, indices) for d in self._all()), strict=True)
        if isinstance(self.datasets, dict):
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        return list(rows)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one dataset")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise TypeError("ConcatDataset: an IterableDataset has no indices; ChainDataset joins streams")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    @property
    def cummulative_sizes(self):
        """The old name of cumulative_sizes."""
        return self.cumulative_sizes

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError(f"ConcatDataset: index {index} is out of range for {len(self)} samples")
            index = index + len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"ConcatDataset: index {index} is out of range for {len(self)} samples")
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self):
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _streams(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise TypeError(f"ChainDataset: expected IterableDatasets, got a {type(d).__name__}")
            yield d

    def __iter__(self):
        return itertools.chain.from_iterable(self._streams())

    def __len__(self):
        return sum(len(d) for d in self._streams())


class Subset(Dataset):
    """The samples of `dataset` at `indices`."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            # A subclass that changes single samples must see each of them.
            return [self[i] for i in indices]
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


def take_batch(dataset, indices):
    """What default_collate makes of the samples at `indices`, gathered at once; None where the dataset cannot."""
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or any(type(i) is not int for i in indices):
        return None
    count = len(dataset)
    if any(not -count <= i < count for i in indices):
        return None
    rows = strata.tensor([i % count for i in indices], dtype=strata.int64)
    return [t.index_select(0, rows.to(t.device)) for t in dataset.tensors]


def draws_nothing(dataset):
    """Whether samples surely take no random numbers, so that a DataLoader need not keep the generators apart."""
    kind = type(dataset)
    if kind is Subset:
        return draws_nothing(dataset.dataset)
    if kind is ConcatDataset:
        return all(map(draws_nothing, dataset.datasets))
    if kind is StackDataset:
        return all(map(draws_nothing, dataset._all()))
    return kind in (TensorDataset, strata.Tensor, list, tuple, range, str)


def random_split(dataset, lengths, generator=None):
    """Random disjoint subsets of the given lengths, or of the given fractions of 1.

    Fractions are rounded down, and the samples left over go one each to the first subsets.

    Raises:
        ValueError: the lengths do not add up to the length of the dataset, a fraction is outside [0, 1].
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= fraction <= 1 for fraction in lengths):
            raise ValueError(f"random_split: fractions must lie in [0, 1], got {list(lengths)}")
        counts = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
        lengths = counts
        if 0 in lengths:
            warnings.warn(f"random_split: subset {lengths.index(0)} is empty", stacklevel=2)
    if sum(lengths) != total:
        raise ValueError(f"random_split: the lengths add up to {sum(lengths)}, the dataset has {total} samples")
    order = strata.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
