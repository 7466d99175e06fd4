"""nn.utils.parametrizations.orthogonal: what it gives is orthogonal, begins where the weight was, and learns."""

import pytest
import strata
from strata import nn
from strata.nn.utils.parametrizations import orthogonal
from strata.testing import assert_close


def off(weight):
    small = weight.T @ weight if weight.shape[0] >= weight.shape[1] else weight @ weight.T
    return (small - strata.eye(len(small), dtype=weight.dtype)).abs().max().item()


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("trivialization", [True, False])
def test_stays_orthogonal(kind, shape, trivialization):
    strata.manual_seed(0)
    layer = nn.Linear(shape[1], shape[0], dtype=strata.float64)
    start = nn.init.orthogonal_(strata.empty(*shape, dtype=strata.float64))
    with strata.no_grad():
        layer.weight.copy_(start)
    if not trivialization and kind != "householder":
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            orthogonal(layer, "weight", kind, use_trivialization=False)
            layer.weight = start
        return
    orthogonal(layer, "weight", kind, use_trivialization=trivialization)
    assert_close(layer.weight, start)
    optimizer = strata.optim.SGD(layer.parameters(), lr=0.1)
    x = strata.randn(5, shape[1], dtype=strata.float64)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (layer(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        assert off(layer.weight) < 1e-12
    assert losses[-1] < losses[0]


def test_what_is_not_orthogonal_is_made_so():
    layer = orthogonal(nn.Linear(3, 3))
    assert off(layer.weight.detach()) < 1e-5 and layer.parametrizations.weight[0].orthogonal_map == "matrix_exp"
    layer.weight = strata.ones(3, 3) + strata.eye(3)
    assert off(layer.weight.detach()) < 1e-5
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    with pytest.raises(ValueError, match="has no parameter or buffer"):
        orthogonal(nn.Linear(2, 2), "weights")
