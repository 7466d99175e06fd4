"""Rows that are copied a few bytes away from their place in a page: src/core/memcpy.cpp has a way of its own for them."""

from __future__ import annotations

import pytest
import strata

WIDTHS = (511, 512, 513, 1000, 1024, 2047, 4096, 70_000)


@pytest.mark.parametrize("width", WIDTHS)
def test_rolled_rows(width):
    x = strata.arange(3 * width).view(3, width).to(strata.float32)
    for by in (1, 2, 3, 7, 8, width - 1):
        y = x.roll(by, 1)
        assert strata.equal(y[:, by:], x[:, : width - by]) and strata.equal(y[:, :by], x[:, width - by :])


@pytest.mark.parametrize("width", WIDTHS)
def test_parts_of_rows(width):
    x = (strata.arange(2 * (width + 40)) % 251).to(strata.uint8).view(2, width + 40)
    want = x.tolist()
    for by in range(34):
        assert x[:, by : by + width].contiguous().tolist() == [row[by : by + width] for row in want]
        assert strata.cat([x[:, :by], x[:, by:]], 1).tolist() == want
