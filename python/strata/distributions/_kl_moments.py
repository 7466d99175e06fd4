"""Divergences between distributions of different kinds: KL(p || q) is minus p's entropy minus the mean over p of log q, and log q
is linear in x, x², log x, log(1 - x) or exp(-t x), whose means over p are known. Infinite where p reaches what q does not."""

from __future__ import annotations

import math
from itertools import product

import strata
from strata import Tensor

from .bernoulli import Bernoulli
from .counts import Binomial, Poisson
from .dirichlet import Beta
from .distribution import Distribution
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .relaxed import ContinuousBernoulli
from .tails import Pareto
from .uniform import Uniform

_EULER = 0.57721566490153286060


def _logarithm(p: Distribution) -> Tensor:
    """The mean of log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -_EULER - p.rate.log()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    return _uniform_logarithm(p.low, p.high)


def _uniform_logarithm(low: Tensor, high: Tensor) -> Tensor:
    return (strata.xlogy(high, high) - strata.xlogy(low, low)) / (high - low) - 1


def _decay(p: Distribution, t: Tensor) -> Tensor:
    """The mean of exp(-t x), for positive t."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    if isinstance(p, Gamma):
        return (p.rate / (p.rate + t)).pow(p.concentration)
    return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))


def _normal(p: Distribution, q: Normal) -> Tensor:
    away = p.variance + (p.mean - q.loc).square()
    return -0.5 * (2 * math.pi * q.scale.square()).log() - 0.5 * away / q.scale.square()


def _exponential(p: Distribution, q: Exponential) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _gamma(p: Distribution, q: Gamma) -> Tensor:
    norm = q.concentration * q.rate.log() - q.concentration.lgamma()
    return norm + (q.concentration - 1) * _logarithm(p) - q.rate * p.mean


def _gumbel(p: Distribution, q: Gumbel) -> Tensor:
    return -q.scale.log() - (p.mean - q.loc) / q.scale - (q.loc / q.scale).exp() * _decay(p, 1 / q.scale)


def _beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
    return norm + (a - 1) * _logarithm(p) + (b - 1) * _uniform_logarithm(1 - p.high, 1 - p.low)


def _continuous_bernoulli(p: Distribution, q: ContinuousBernoulli) -> Tensor:
    return p.mean * q.logits + strata.log1p(-q.probs) + q._log_norm()


def _pareto(p: Uniform, q: Pareto) -> Tensor:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _logarithm(p)


def _uniform(p: Distribution, q: Uniform) -> Tensor:
    return -(q.high - q.low).log() + 0 * p.mean


# Of each q: the mean over p of its log density, the p of which that is known, and where q's density is not zero.
_MEANS = {
    Normal: (_normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Pareto)),
    Exponential: (_exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gamma: (_gamma, (Beta, Pareto, Uniform)),
    Gumbel: (_gumbel, (Exponential, Gamma, Uniform)),
    Beta: (_beta, (Uniform,)),
    ContinuousBernoulli: (_continuous_bernoulli, (Beta, Uniform)),
    Pareto: (_pareto, (Uniform,)),
    Uniform: (_uniform, (Beta, ContinuousBernoulli)),
}
_LOWEST = {Exponential: 0.0, Gamma: 0.0, Beta: 0.0, ContinuousBernoulli: 0.0}
_HIGHEST = {Beta: 1.0, ContinuousBernoulli: 1.0}


def _beyond(p: Distribution, q: Distribution, kind: type) -> Tensor | None:
    """Where bounded p reaches values that q does not have."""
    low = q.low if kind is Uniform else q.scale if kind is Pareto else _LOWEST.get(kind, -math.inf)
    high = q.high if kind is Uniform else _HIGHEST.get(kind, math.inf)
    if isinstance(p, Uniform):
        return (p.low < low) | (p.high > high)
    return (low > 0) | (high < 1) if kind is Uniform else None


def _known(kind: type, p: Distribution, q: Distribution) -> Tensor:
    found = -p.entropy() - _MEANS[kind][0](p, q)
    beyond = _beyond(p, q, kind)
    return found if beyond is None else strata.where(beyond, math.inf, found)


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    return p.mean.new_full(strata.broadcast_shapes(p.batch_shape, q.batch_shape), math.inf)


def _register() -> None:
    for kind, (_, known) in _MEANS.items():
        for other in known:
            register_kl(other, kind)(lambda p, q, kind=kind: _known(kind, p, q))
    bounded, half = (Beta, ContinuousBernoulli), (Exponential, Gamma)
    for pair in (
        *product(bounded, (Pareto,)),
        *product(half, (*bounded, Pareto, Uniform)),
        *product((Gumbel, Laplace, Normal), (*bounded, *half, Pareto, Uniform)),
        *product((Pareto,), (*bounded, Uniform)),
        *product((Poisson,), (Bernoulli, Binomial)),
    ):
        register_kl(*pair)(_infinite)


_register()
