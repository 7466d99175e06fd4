"""Second derivatives of functions made of straight pieces are zeros, as PyTorch's are, and not nothing: a penalty on gradients gives
every parameter a gradient, and an optimiser counts its step."""

import pytest
import strata as torch
from strata.nn import functional as F

POINTS = [-5.0, -2.0, -0.2, 0.3, 2.0, 7.0]
FUNCTIONS = {
    "relu": F.relu,
    "relu_": lambda x: F.relu_(x * 1),
    "leaky_relu": F.leaky_relu,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "nll_loss": lambda x: F.nll_loss(x[None], torch.tensor([2])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros(name):
    x = torch.tensor(POINTS, requires_grad=True)
    (slope,) = torch.autograd.grad(FUNCTIONS[name](x).sum(), x, create_graph=True)
    assert slope.requires_grad
    slope.square().sum().backward()
    assert x.grad.tolist() == [0.0] * len(POINTS)


def test_a_penalty_on_gradients_steps_all_parameters():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LeakyReLU(0.2), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.randn(5, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    (slope.norm(dim=1) - 1).square().mean().backward()
    hidden = net[0].bias
    assert hidden.grad.tolist() == [0.0] * 4  # the last bias is in no slope: PyTorch gives it none either
    assert net[2].bias.grad is None
    optimizer.step()
    assert optimizer.state[hidden]["step"] == 1
