"""assert_close: what passes, what fails, and the text of the failure."""

import math

import pytest
import strata
from strata.testing import assert_close


def failure(actual, expected, kind=AssertionError, **options):
    with pytest.raises(kind) as info:
        assert_close(actual, expected, **options)
    return str(info.value)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [("float16", 1e-3), ("bfloat16", 1.6e-2), ("float32", 1.3e-6), ("float64", 1e-7), ("complex64", 1.3e-6)],
)
def test_default_tolerance_of_each_dtype(dtype, rtol):
    dtype = getattr(strata, dtype)
    big = strata.tensor([1000.0, 2.0], dtype=dtype)
    assert_close(big, big.clone())
    assert_close(strata.tensor(1.0), strata.tensor(1.0 + 1e-6))
    assert strata.testing.default_tolerances(big)[0] == rtol
    failure(big, big * (1 + 4 * rtol) + 0.01)


def test_integers_and_bool_compare_exactly():
    text = failure(strata.tensor([1, 2]), strata.tensor([1, 3]))
    assert text.startswith("Tensor-likes are not equal!")
    failure(strata.tensor([True]), strata.tensor([False]))


def test_text_of_tensors():
    text = failure(strata.tensor([[1.0, 2.0], [3.0, 4.0]]), strata.tensor([[1.0, 2.5], [3.0, 8.0]]))
    assert text == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 4.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (1, 1) (up to 1.3e-06 allowed)"
    )


def test_text_of_scalars():
    expected = (
        "Scalars are not close!\n\n"
        "Expected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
        "Relative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert failure(1.0, 2.0) == expected
    assert failure(strata.tensor(1.0), strata.tensor(2.0)).startswith("Scalars are not close!")
    assert failure(1, 2).startswith("Scalars are not equal!")


def test_differences_do_not_wrap():
    text = failure(strata.tensor([0], dtype=strata.uint8), strata.tensor([255], dtype=strata.uint8))
    assert "Greatest absolute difference: 255 at index (0,)" in text


def test_nan():
    nan = strata.tensor([math.nan, 1.0])
    failure(nan, nan)
    assert_close(nan, nan, equal_nan=True)
    assert_close(math.nan, math.nan, equal_nan=True)
    failure(math.nan, 1.0, equal_nan=True)


def test_attributes():
    a = strata.zeros(2, 3)
    assert failure(a, a.t()).startswith("The values for attribute 'shape' do not match:")
    assert "attribute 'dtype'" in failure(a, a.double())
    assert_close(a, a.double(), check_dtype=False)
    strided = strata.zeros(3, 2).t()
    assert_close(a, strided)
    assert "attribute 'stride()'" in failure(a, strided, check_stride=True)
    assert "attribute 'device'" in failure(a, strata.zeros(2, 3, device="meta"))
    assert_close(strata.zeros(2, device="meta"), strata.ones(2, device="meta"))


def test_nests_and_the_path_to_the_failure():
    a = {"w": [strata.ones(2), 1.0], "b": None}
    assert_close(a, {"w": [strata.ones(2), 1.0], "b": None})
    text = failure(a, {"w": [strata.ones(2), 1.5], "b": None})
    assert text.endswith("The failure occurred for item ['w'][1]")
    assert failure([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"
    text = failure({"a": 1}, {"b": 1})
    assert "Missing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']" in text


def test_kinds():
    assert failure(None, 1) == "None mismatch: None is not 1"
    assert failure(True, False) == "Booleans mismatch: True is not False"
    assert "(d)types do not match" in failure(1, 1.0)
    assert_close(1, 1.0, check_dtype=False)
    assert "No comparison pair" in failure(strata.tensor(1.0), 1.0, TypeError)
    assert "No comparison pair" in failure("a", "a", TypeError)


def test_subclasses():
    p = strata.nn.Parameter(strata.ones(2))
    assert_close(p, strata.ones(2))
    failure(p, strata.ones(2), TypeError, allow_subclasses=False)


def test_numpy():
    numpy = pytest.importorskip("numpy")
    assert_close(numpy.ones(3), numpy.ones(3))
    failure(numpy.ones(3), numpy.zeros(3))
    assert_close(numpy.float32(1), numpy.float32(1))


def test_tolerances_come_together():
    assert "got no atol" in failure(1.0, 1.0, ValueError, rtol=0.1)
    assert_close(1.0, 1.05, rtol=0.1, atol=0)


def test_message():
    assert failure(1, 2, msg="mine") == "mine"
    assert failure(1, 2, msg=lambda text: "[" + text).startswith("[Scalars")
