"""Gradients of gradients of pooled means hang on the input, whatever the windows."""

import pytest
import strata

F = strata.nn.functional


@pytest.mark.parametrize("kernel", [2, 4])
@pytest.mark.parametrize("f", [lambda x, k: F.avg_pool2d(x, k), lambda x, k: F.adaptive_avg_pool2d(x, 8 // k)], ids=["avg", "adaptive"])
def test_a_penalty_is_differentiable(f, kernel):
    x = strata.randn(2, 3, 8, 8, requires_grad=True)
    (g,) = strata.autograd.grad(f(x, kernel).sum(), x, create_graph=True)
    assert g.requires_grad
    (g**2).sum().backward()
    assert strata.equal(x.grad, strata.zeros_like(x))
