"""Datasets and random_split."""

import pytest
import strata
from data_cases import Stream
from strata.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


def test_tensor_dataset():
    d = TensorDataset(strata.arange(4), strata.arange(8).reshape(4, 2))
    assert len(d) == 4
    assert [t.tolist() for t in d[2]] == [2, [4, 5]]
    with pytest.raises(AssertionError, match=r"first dimension in all, got \[4, 3\]"):
        TensorDataset(strata.zeros(4), strata.zeros(3))


def test_concat():
    d = ConcatDataset([[1, 2], [], [3]])
    assert [d[i] for i in range(3)] == [1, 2, 3] and d[-1] == 3 and len(d) == 3
    with pytest.raises(IndexError):
        d[3]
    with pytest.raises(ValueError, match="index -4"):
        d[-4]
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])
    with pytest.raises(TypeError, match="ChainDataset"):
        ConcatDataset([Stream(2)])


def test_plus():
    class Three(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return i

    assert isinstance(Three() + Three(), ConcatDataset)
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]
    with pytest.raises(TypeError, match="got a list"):
        list(ChainDataset([[1]]))


def test_stack():
    pairs = StackDataset([1, 2], "ab")
    assert pairs[1] == (2, "b") and len(pairs) == 2
    assert pairs.__getitems__([1, 0]) == [(2, "b"), (1, "a")]
    named = StackDataset(x=[1, 2], y="ab")
    assert named[0] == {"x": 1, "y": "a"}
    assert named.__getitems__([1]) == [{"x": 2, "y": "b"}]
    with pytest.raises(ValueError, match="differ in length"):
        StackDataset([1], [1, 2])
    with pytest.raises(ValueError, match="either"):
        StackDataset()


def test_subset():
    d = Subset("abcdef", [4, 0])
    assert d[0] == "e" and len(d) == 2 and d.__getitems__([1, 0]) == ["a", "e"]

    class Upper(Subset):
        def __getitem__(self, i):
            return super().__getitem__(i).upper()

    assert Upper("abc", [1, 2]).__getitems__([0, 1]) == ["B", "C"]


def test_random_split():
    parts = random_split(range(10), [3, 7], generator=strata.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [3, 7]
    assert sorted(i for p in parts for i in p.indices) == list(range(10))
    again = random_split(range(10), [3, 7], generator=strata.Generator().manual_seed(1))
    assert [p.indices for p in parts] == [p.indices for p in again]
    assert [len(p) for p in random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]
    with pytest.raises(ValueError, match="add up to 9"):
        random_split(range(10), [3, 6])
    with pytest.raises(ValueError, match="fractions must lie"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="subset 1 is empty"):
        random_split(range(2), [0.99, 0.01, 0.0])
