"""Operators on tensors of as many dims as there can be."""

from __future__ import annotations

import pytest
import strata


@pytest.mark.parametrize("rank", [20, 33, 64])
def test_moves_along_an_index(rank):
    x = strata.arange(6).reshape([1] * (rank - 2) + [2, 3])
    index = strata.tensor([2, 0])
    assert strata.index_select(x, rank - 1, index).flatten().tolist() == [2, 0, 5, 3]
    assert strata.gather(x, rank - 1, index.reshape([1] * (rank - 2) + [2, 1])).flatten().tolist() == [2, 3]
