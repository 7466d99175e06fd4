"""strata.masked: what PyTorch 2.13 gives for numbers, complex values and without a dim."""

from __future__ import annotations

import pytest
import strata
from strata import masked

MASK = strata.tensor([True, True, False])


def test_products_of_numbers():
    assert masked.prod(strata.tensor(-8), -1).item() == -8
    assert masked.prod(strata.tensor([[1, 2], [3, 4]]), mask=strata.tensor([[True, False], [True, True]])).item() == 12


def test_places_have_the_dtype_of_the_input():
    places = masked.argmax(strata.tensor([1.0, 5.0, 2.0]), 0, mask=strata.tensor([True, False, True]))
    assert places.dtype == strata.float32
    assert places.item() == 2
    assert masked.argmin(strata.tensor([1, 5, 2]), 0, dtype=strata.int32).dtype == strata.int32


@pytest.mark.parametrize("mask, value", [(MASK, 6.5), (None, 8.583333333)])
def test_variances_of_complex_values_are_of_distances(mask, value):
    x = strata.tensor([1 + 2j, 3 - 1j, -2 + 0.5j], dtype=strata.complex128)
    for f, wanted in ((masked.var, value), (masked.std, value**0.5)):
        found = f(x, 0, mask=mask)
        assert found.dtype == x.dtype
        assert abs(found.item() - wanted) < 1e-8


def test_logsumexp_of_everything():
    assert masked.logsumexp(strata.tensor([1.0, 2.0, 3.0]), mask=MASK).item() == strata.tensor([1.0, 2.0]).logsumexp(0).item()
