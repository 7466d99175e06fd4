"""Samplers."""

import pytest
import strata
from strata.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded():
    return strata.Generator().manual_seed(3)


def test_sequential():
    assert list(SequentialSampler("abc")) == [0, 1, 2] and len(SequentialSampler("abc")) == 3


def test_random_is_a_permutation_and_repeats_with_the_seed():
    a = list(RandomSampler(range(50), generator=seeded()))
    assert sorted(a) == list(range(50)) and a != list(range(50))
    assert a == list(RandomSampler(range(50), generator=seeded()))
    strata.manual_seed(1)
    sampler = RandomSampler(range(50))
    first, second = list(sampler), list(sampler)
    strata.manual_seed(1)
    assert first == list(RandomSampler(range(50))) and first != second


def test_random_counts():
    assert len(list(RandomSampler(range(10), replacement=True, num_samples=77))) == 77
    more = list(RandomSampler(range(10), num_samples=25, generator=seeded()))
    assert sorted(more[:10]) == sorted(more[10:20]) == list(range(10)) and len(more) == 25
    assert set(RandomSampler(range(3), replacement=True, num_samples=100)) == {0, 1, 2}


def test_subset_and_weighted():
    assert sorted(SubsetRandomSampler([7, 3, 9], generator=seeded())) == [3, 7, 9]
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 200, generator=seeded()))
    assert set(drawn) == {1, 2} and drawn.count(2) > drawn.count(1)
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]


def test_batches():
    assert list(BatchSampler(range(7), 3, False)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]]
    assert (len(BatchSampler(range(7), 3, False)), len(BatchSampler(range(7), 3, True))) == (3, 2)


@pytest.mark.parametrize("count", [10, 11, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed(count, drop_last):
    shares = []
    for rank in range(4):
        sampler = DistributedSampler(range(count), 4, rank, seed=5, drop_last=drop_last)
        sampler.set_epoch(1)
        shares.append(list(sampler))
        assert len(shares[-1]) == len(sampler)
    seen = [i for share in shares for i in share]
    assert len({len(share) for share in shares}) == 1
    if not drop_last:
        assert set(seen) == set(range(count))
    assert list(DistributedSampler(range(6), 2, 1, shuffle=False)) == [1, 3, 5]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: RandomSampler([]), ValueError),
        (lambda: RandomSampler([1], num_samples=-1), ValueError),
        (lambda: RandomSampler([1], replacement=1), TypeError),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError),
        (lambda: BatchSampler([1], True, False), ValueError),
        (lambda: BatchSampler([1], 1, "no"), ValueError),
        (lambda: DistributedSampler([1], 2, 2), ValueError),
    ],
)
def test_refusals(make, error):
    with pytest.raises(error):
        make()


def test_samples_of_nothing_are_refused():
    with pytest.raises(ValueError, match="empty"):
        list(RandomSampler(range(0), num_samples=3))
