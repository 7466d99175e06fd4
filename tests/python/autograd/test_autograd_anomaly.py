"""Anomaly mode: the forward call of an error in backward, and where NaN is born."""

import warnings

import pytest
import strata as torch
from strata.autograd import Function, detect_anomaly, set_detect_anomaly


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Anomaly Detection has been enabled")
        yield
    assert not torch.is_anomaly_enabled()


class NanGrad(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad * float("nan")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_nan_of_a_node_is_raised_with_its_name():
    x = leaf(1.0, 2.0)
    with detect_anomaly():
        y = NanGrad.apply(x)
        with pytest.raises(RuntimeError, match="Function 'NanGradBackward' returned nan values in its 0th output"):
            y.sum().backward()
    NanGrad.apply(x).sum().backward()


def test_check_nan_off():
    x = leaf(1.0)
    with detect_anomaly(check_nan=False):
        NanGrad.apply(x).sum().backward()


def test_the_forward_line_is_shown():
    x = leaf(0.0)
    with detect_anomaly():
        y = x.sqrt() * 0.0  # the line to be named
        with pytest.raises(RuntimeError, match="SqrtBackward0") as error:
            y.sum().backward()
    assert "the line to be named" in str(error.value)


def test_errors_show_the_forward_call():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("in backward")

    with detect_anomaly():
        y = Fails.apply(leaf(1.0))
        with pytest.warns(UserWarning, match="Error detected in FailsBackward") as caught:
            with pytest.raises(ValueError, match="in backward"):
                y.backward()
    assert any("y = Fails.apply(leaf(1.0))" in str(w.message) for w in caught)


def test_nan_made_in_forward_is_caught_at_its_origin():
    # The loss is NaN, though every gradient is finite.
    x = leaf(-1.0, 1.0)
    with detect_anomaly():
        h = x.log()  # NaN is born here
        loss = (h * 1.0).sum()
        with pytest.raises(RuntimeError, match="aten::log") as error:
            loss.backward()
    assert "NaN is born here" in str(error.value)


def test_nan_blame_does_not_move_to_a_later_operator():
    # Without the check at the root the last operator of the forward pass is blamed for a NaN that log has made.
    x = leaf(-1.0)
    with detect_anomaly():
        h = x.log()  # the culprit
        loss = (h * h).sum()
        with pytest.raises(RuntimeError, match="aten::log") as error:
            loss.backward()
    assert "the culprit" in str(error.value)


def test_nan_in_a_leaf():
    x = leaf(float("nan"))
    with detect_anomaly():
        with pytest.raises(RuntimeError, match="leaf of shape"):
            (x * 2).sum().backward()


def test_masked_nan_of_forward_is_no_error():
    x = leaf(-1.0, 1.0)
    with detect_anomaly():
        y = torch.where(x.detach() > 0, x, x.detach().log() * 0)
        y = torch.where(torch.isnan(y), torch.zeros(2), y)
        y.sum().backward()
    assert x.grad is not None


def test_set_detect_anomaly():
    set_detect_anomaly(True)
    assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    set_detect_anomaly(False)
    with set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()
