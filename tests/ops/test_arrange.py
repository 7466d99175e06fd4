"""Reversals of a number, whose only dim has the names 0 and -1: a copy of it, eager and compiled."""

from __future__ import annotations

import pytest
import strata


@pytest.mark.parametrize("dim", (0, -1))
def test_number_is_its_own_reversal(dim):
    x = strata.tensor(2.5, requires_grad=True)
    y = x.flip(dim)
    y.backward()
    assert y.item() == 2.5 and y.data_ptr() != x.data_ptr() and x.grad.item() == 1
    number = strata.tensor(-3.0)
    assert strata.graph(lambda a: strata.flip(a, (dim,)) * 2, number).compile()(number).item() == -6


def test_other_dims_of_a_number_are_refused():
    with pytest.raises(IndexError, match=r"\[-1, 0\]"):
        strata.tensor(2.5).flip(1)
