"""Samples of gamma variables of rate 1, with gradients to their concentration."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["standard_gamma"]


def _draw(alpha: Tensor) -> Tensor:
    """Rejection sampling, in float64. Source: doi:10.1145/358407.358414 (Marsaglia and Tsang).

    Nothing would ever be accepted of a concentration that is negative, NaN or infinite: NaN, and infinity of the last.
    """
    a = alpha.detach().double()
    small = a < 1
    d = strata.where(small, a + 1, a) - 1 / 3
    c = (9 * d).rsqrt()
    flat = strata.where(a == float("inf"), a, strata.nan).reshape(-1)
    left = ((a >= 0) & (a < float("inf"))).reshape(-1).nonzero()[:, 0]
    d_all, c_all = d.reshape(-1), c.reshape(-1)
    while left.numel():
        dk, ck = d_all[left], c_all[left]
        x = strata.randn(left.shape, dtype=strata.float64, device=d.device)
        v = (1 + ck * x) ** 3
        u = strata.rand(left.shape, dtype=strata.float64, device=d.device)
        taken = (v > 0) & ((1 - u).log() < 0.5 * x * x + dk - dk * v + dk * v.clamp(min=1e-300).log())
        flat[left[taken]] = (dk * v)[taken]
        left = left[~taken]
    # A variable of concentration a is one of a + 1 times U ** (1 / a).
    u = 1 - strata.rand(a.shape, dtype=strata.float64, device=a.device)
    result = flat.view(a.shape)
    return strata.where(small, result * u.pow(1 / a), result)


def _derivative(alpha: Tensor, x: Tensor) -> Tensor:
    """dx / d alpha where the cumulative probability of x stays: -(d cdf / d alpha) / density, by differences in float64."""
    a, x = alpha.double(), x.double()
    step = 1e-4 * strata.where(a < 1, a, a.sqrt())
    # Of the two tails the smaller one is the accurate one.
    lower = (strata.special.gammainc(a + step, x) - strata.special.gammainc(a - step, x)) / (2 * step)
    upper = (strata.special.gammaincc(a + step, x) - strata.special.gammaincc(a - step, x)) / (2 * step)
    slope = strata.where(x < a, lower, -upper)
    density = ((a - 1) * x.log() - x - a.lgamma()).exp()
    return -slope / density


class _StandardGamma(strata.autograd.Function):
    @staticmethod
    def forward(ctx: Any, alpha: Tensor) -> Tensor:
        sample = _draw(alpha)
        sample = sample.to(alpha.dtype).clamp(min=strata.finfo(alpha.dtype).tiny)
        ctx.save_for_backward(alpha, sample)
        return sample

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        alpha, sample = ctx.saved_tensors
        return grad * _derivative(alpha, sample).to(grad.dtype)


def standard_gamma(alpha: Tensor) -> Tensor:
    """One gamma variable of rate 1 for each concentration, with the pathwise gradient to it. Floating-point, alpha > 0."""
    return _StandardGamma.apply(alpha)
