"""histc puts elements into bins as PyTorch does: places are computed in the elements' own type."""

import pytest
import strata


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64], ids=str)
def test_edges(dtype):
    tenths = strata.arange(0, 101).to(dtype) / 10
    assert strata.histc(tenths, 10, 0, 1).tolist() == [1.0] * 9 + [2.0]
    assert strata.histc(strata.tensor([0.7], dtype=dtype), 10, 0, 1).argmax() == 7


def test_compiled():
    x = strata.randn(300)
    assert strata.equal(strata.compile(lambda t: strata.histc(t, 20, -2, 2))(x), strata.histc(x, 20, -2, 2))
