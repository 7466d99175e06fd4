"""Numbers and lists of flags that nobody passes but by mistake, where generated code computes with them."""

from __future__ import annotations

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
