"""Initial values: bounds, moments, structure, gains and errors."""

import math

import pytest
import strata
from strata.nn import init


def big():
    return strata.empty(200, 300)


@pytest.mark.parametrize(
    ("fill", "bound"),
    [
        (lambda x: init.uniform_(x, -0.5, 0.5), 0.5),
        (lambda x: init.xavier_uniform_(x, gain=2.0), 2 * math.sqrt(6 / 500)),
        (lambda x: init.kaiming_uniform_(x, a=math.sqrt(5)), 1 / math.sqrt(300)),
        (lambda x: init.kaiming_uniform_(x, mode="fan_out", nonlinearity="relu"), math.sqrt(6 / 200)),
    ],
)
def test_uniform_bounds(fill, bound):
    x = big()
    assert fill(x) is x
    assert float(x.abs().max()) <= bound and float(x.max()) > 0.99 * bound and abs(float(x.mean())) < bound / 20


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda x: init.normal_(x, 0.0, 0.3), 0.3),
        (lambda x: init.xavier_normal_(x), math.sqrt(2 / 500)),
        (lambda x: init.kaiming_normal_(x, nonlinearity="relu"), math.sqrt(2 / 300)),
        (lambda x: init.kaiming_normal_(x, mode="fan_out", nonlinearity="tanh"), 5 / 3 / math.sqrt(200)),
    ],
)
def test_normal_moments(fill, std):
    x = fill(big())
    assert float(x.std()) == pytest.approx(std, rel=0.03) and abs(float(x.mean())) < std / 20


def test_truncated_normal():
    x = init.trunc_normal_(big(), mean=0.5, std=1.0, a=-0.5, b=1.0)
    assert float(x.min()) >= -0.5 and float(x.max()) <= 1.0
    assert float(x.mean()) == pytest.approx(0.2967, abs=0.01)  # of the truncated distribution
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(strata.empty(3), mean=9.0)


def test_constants_and_structure():
    assert init.constant_(strata.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert init.ones_(strata.empty(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(strata.empty(2)).tolist() == [0.0, 0.0]
    assert init.eye_(strata.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    weight = init.dirac_(strata.empty(4, 2, 3), groups=2)
    assert weight[:, :, 1].tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    assert float(weight.sum()) == 4.0
    column_zeros = (init.sparse_(strata.empty(10, 4), 0.25) == 0).sum(0)
    assert column_zeros.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 2, 4)])
def test_orthogonal(shape):
    x = init.orthogonal_(strata.empty(*shape), gain=2.0).reshape(shape[0], -1)
    small = x @ x.t() if x.shape[0] <= x.shape[1] else x.t() @ x
    expected = 4.0 * strata.eye(small.shape[0])
    assert float((small - expected).abs().max()) < 1e-5


def test_gains():
    assert init.calculate_gain("linear") == 1 and init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("relu") == pytest.approx(math.sqrt(2))
    assert init.calculate_gain("selu") == 0.75
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    assert init.calculate_gain("leaky_relu", 2) == pytest.approx(math.sqrt(2 / 5))
    with pytest.raises(ValueError, match="Unsupported nonlinearity cube"):
        init.calculate_gain("cube")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_errors():
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        init.xavier_normal_(strata.empty(3))
    with pytest.raises(ValueError, match="Mode out not supported"):
        init.kaiming_normal_(strata.empty(3, 3), mode="out")
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(strata.empty(3))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(strata.empty(3, 2, 2), groups=2)
    with pytest.raises(ValueError, match="Only tensors with 2 or more dimensions"):
        init.orthogonal_(strata.empty(3))
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(strata.empty(0, 3))


def test_fills_are_outside_of_autograd():
    parameter = strata.nn.Parameter(strata.empty(3, 3))
    init.xavier_uniform_(parameter)
    init.orthogonal_(parameter)
    assert parameter.is_leaf and parameter.requires_grad


def test_retired_names_warn():
    with pytest.warns(FutureWarning, match="now deprecated in favor of"):
        assert init.constant(strata.empty(1), 2.0).tolist() == [2.0]
