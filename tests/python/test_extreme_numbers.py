"""Numbers and lists of flags that nobody passes but by mistake, where generated code computes with them."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))
from table import ENTRIES, calls, operator, strata  # noqa: E402

MASKED = [e for e in ENTRIES if any(a.type.startswith("bool[") for a in e.schema.args)]


@pytest.mark.parametrize("entry", MASKED, ids=lambda e: e.schema.full)
def test_a_mask_that_is_too_short(entry):
    at = next(i for i, a in enumerate(entry.schema.args) if a.type.startswith("bool["))
    for args, kwargs in calls(entry, "float32"):
        if any(args[at]):
            with pytest.raises((RuntimeError, TypeError)):
                operator(entry.schema)(*args[:at], [], *args[at + 1:], **kwargs)


def test_there_are_masks():
    assert {e.schema.name for e in MASKED} >= {"native_layer_norm_backward", "convolution_backward", "native_batch_norm_backward"}


@pytest.mark.parametrize("n", [2**63 - 1, -2**63])
def test_an_order_that_a_derivative_adds_to(n):
    x = strata.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not fit in 64 bits|negative"):
        strata.polygamma(n, x).sum().backward()


@pytest.mark.parametrize("exponent", [2**63, 2**63 - 1, -2**63, 2**64 - 1])
def test_an_exponent_that_a_derivative_takes_one_from(exponent):
    x = strata.ones(3, dtype=strata.float64, requires_grad=True)
    x.float_power(exponent).sum().backward()
    assert x.grad.tolist() == [float(exponent)] * 3


def test_a_number_of_turns_that_a_derivative_negates():
    x = strata.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not fit in 64 bits"):
        x.rot90(-2**63, [0, 1]).sum().backward()


def test_diagonals_that_lie_outside_of_every_tensor():
    x = strata.zeros(3, 4)
    for offset in (-(2**63), -(2**63) + 1, 2**63 - 1, -3, 4):
        assert x.diagonal_scatter(strata.empty(0), offset).equal(x) and x.diagonal(offset).numel() == 0
        assert strata.diagonal_copy(x, offset).numel() == 0
        strata.ones(3, 4, requires_grad=True).diagonal(offset).sum().backward()


def test_more_elements_than_can_be_counted():
    long = strata.ones(1).as_strided([2**63 - 1], [0])
    for call in (lambda: long.sum(), lambda: long.softmax(0), lambda: long.amax(), lambda: long.norm()):
        with pytest.raises((RuntimeError, MemoryError), match="at most 2\\^60 elements|does not fit"):
            call()


def test_complex_functions_beside_their_hard_points():
    """PyTorch 2.13's values: small numbers keep their digits, and what is near to a pole is finite."""
    small = strata.tensor([1e-4 + 1e-4j, 1e-8 + 1e-8j, 1e-10 + 0j, -2 + 1e-9j]).log1p()
    want = strata.tensor([9.9999997e-05 + 9.9990001e-05j, 1e-8 + 1e-8j, 1e-10 + 0j, 5e-19 + 3.1415927j])
    assert strata.allclose(small.real, want.real, rtol=1e-6, atol=0) and strata.allclose(small.imag, want.imag, rtol=1e-6, atol=0)
    assert strata.tensor([1e-20 + 0j], dtype=strata.complex128).log1p().item() == 1e-20
    near = strata.tensor([1e-20 + 1j]).atan().item(), strata.tensor([1 + 1e-20j]).atanh().item(), strata.tensor([-1 + 1e-30j]).atanh().item()
    for got, expected in zip(near, (0.7853982 + 23.372425j, 23.372425 + 0.7853982j, -34.885346 + 0.7853982j), strict=True):
        assert abs(got - expected) < 1e-5
    assert strata.tensor([1 + 0j]).atanh().item() == complex(math.inf, 0)


def test_numbers_beyond_int64_on_the_left():
    x = strata.tensor([2.0])
    assert (2**63 // x).item() == 2.0**62 and (2**63 % strata.tensor([7.0])).item() == 2.0**63 % 7
    assert strata.bucketize(2**63, strata.tensor([1.0])).item() == 1 and strata.searchsorted(strata.tensor([1.0, 2.0]), 2**63).item() == 2


def test_arrays_over_tensors():
    numpy = pytest.importorskip("numpy")
    for left in (numpy.ones(2), numpy.array(2.0)):
        found = left / strata.tensor([2.0, 4.0])
        assert isinstance(found, strata.Tensor) and found.tolist() == (left / numpy.array([2.0, 4.0])).tolist()


def test_targets_and_smoothing_out_of_range():
    F = strata.nn.functional
    for target in (1.5, -0.1):
        with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
            F.binary_cross_entropy(strata.tensor([0.5]), strata.tensor([target]))
    for target in (strata.ones(2, 3) / 3, strata.tensor([0, 1])):
        with pytest.raises(RuntimeError, match="label_smoothing must be between"):
            F.cross_entropy(strata.ones(2, 3), target, label_smoothing=1.5)


def test_gradient_of_logsumexp_at_infinities():
    inf = float("inf")
    for row, wanted in (((inf, 1.0), (math.nan, 0.0)), ((-inf, -inf), (0.0, 0.0)), ((-inf, 2.0), (0.0, 1.0))):
        x = strata.tensor(row, requires_grad=True)
        x.logsumexp(0).backward()
        assert x.grad.tolist() == pytest.approx(wanted, nan_ok=True)
