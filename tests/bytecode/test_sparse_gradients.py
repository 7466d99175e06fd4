"""Sparse gradients go past the engine: an embedding that makes one ends a graph."""

import pytest
import strata
from strata import nn
from strata.nn import functional as F


@pytest.mark.parametrize("how", ["module", "function"])
def test_sparse_gradients_arrive(how):
    table = nn.Embedding(6, 2, sparse=True)

    def f(i):
        return ((table(i) if how == "module" else F.embedding(i, table.weight, sparse=True)) * 2).sum()

    compiled = strata.compile(f)
    for _ in range(2):
        compiled(strata.tensor([1, 4, 1])).backward()
    assert table.weight.grad.is_sparse and table.weight.grad.to_dense()[1].tolist() == [8.0, 8.0]
    assert "a sparse gradient cannot be part of a graph" in compiled._strata_compiled.breaks[0].reason
