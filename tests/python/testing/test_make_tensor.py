"""make_tensor: range, layout and refusals."""

import math

import pytest
import strata
from strata.testing import make_tensor

DTYPES = [strata.bool, strata.uint8, strata.int8, strata.int16, strata.int32, strata.int64]
FLOATS = [strata.float16, strata.bfloat16, strata.float32, strata.float64, strata.complex64, strata.complex128]


def parts(t):
    values = t.reshape(-1).tolist()
    return [p for v in values for p in (v.real, v.imag)] if t.dtype.is_complex else values


@pytest.mark.parametrize("dtype", DTYPES + FLOATS)
def test_default_range(dtype):
    t = make_tensor(4, 50, dtype=dtype, device="cpu")
    assert t.shape == (4, 50) and t.dtype == dtype and t.is_contiguous()
    low = 0 if dtype in (strata.bool, strata.uint8) else -9
    assert all(low <= v < 10 for v in parts(t)) and len(set(parts(t))) > 1


@pytest.mark.parametrize("dtype", DTYPES[1:] + FLOATS)
def test_given_range(dtype):
    t = make_tensor((300,), dtype=dtype, device="cpu", low=2, high=5)
    assert all(2 <= v <= 5 for v in parts(t))
    assert all(v < 5 for v in parts(t)) or dtype in (strata.float16, strata.bfloat16)


def test_the_whole_range_of_a_dtype():
    t = make_tensor(100, dtype=strata.float32, device="cpu", low=-math.inf, high=math.inf)
    assert all(math.isfinite(v) for v in t.tolist())
    make_tensor(100, dtype=strata.int64, device="cpu", low=-(2**63), high=2**63 - 1)


def test_noncontiguous():
    t = make_tensor(3, 4, dtype=strata.float32, device="cpu", noncontiguous=True)
    assert t.shape == (3, 4) and not t.is_contiguous() and t.storage_offset() == 1
    assert make_tensor((), dtype=strata.float32, device="cpu", noncontiguous=True).is_contiguous()


def test_exclude_zero():
    t = make_tensor(200, dtype=strata.int32, device="cpu", low=0, high=2, exclude_zero=True)
    assert all(v == 1 for v in t.tolist())


def test_requires_grad():
    assert make_tensor(2, dtype=strata.float64, device="cpu", requires_grad=True).requires_grad
    assert make_tensor(4, dtype=strata.float64, device="cpu", requires_grad=True, noncontiguous=True).is_leaf
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=strata.int64, device="cpu", requires_grad=True)


@pytest.mark.parametrize("options", [{"low": 3, "high": 1}, {"low": math.nan}, {"low": 300, "high": 400}])
def test_ranges_without_a_value(options):
    with pytest.raises(ValueError, match="make_tensor"):
        make_tensor(2, dtype=strata.uint8, device="cpu", **options)
