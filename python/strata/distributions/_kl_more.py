"""More divergences; kl.py loads them when it has none for a pair."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from .bernoulli import Bernoulli
from .counts import Binomial, Poisson
from .dirichlet import Beta, Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .independent import _sum_last
from .kl import _no_formula, kl_divergence, register_kl
from .laplace import Laplace
from .multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from .normal import Normal
from .relaxed import ContinuousBernoulli
from .tails import HalfCauchy, Pareto
from .transformed_distribution import TransformedDistribution

_EULER = 0.57721566490153286060


@register_kl(ExponentialFamily, ExponentialFamily)
def _one_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normaliser (Nielsen and Nock, 2010: Entropies and cross-entropies of exponential families)."""
    if type(p) is not type(q):
        raise _no_formula(p, q)
    ours, theirs = [n if n.requires_grad else n.detach().requires_grad_() for n in p._natural_params], q._natural_params
    with strata.enable_grad():
        norm = p._log_normalizer(*ours)
        slopes = strata.autograd.grad(norm.sum(), ours, create_graph=True)
    found = q._log_normalizer(*theirs) - norm
    for a, b, slope in zip(ours, theirs, slopes, strict=True):
        found = found - _sum_last((b - a) * slope, a.dim() - len(p.batch_shape))
    return found


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log() + strata.lgamma(q.concentration) - strata.lgamma(p.concentration)
        + (p.concentration - q.concentration) * strata.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )  # fmt: skip


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    return (
        -q.concentration * ratio.log() + ratio + q.concentration.lgamma() + q.concentration * _EULER - (1 + _EULER)
    )


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return found.masked_fill((p.total_count > q.total_count).expand_as(found), math.inf)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    means = p.mean * (p.logits - q.logits)
    return means + p._log_norm() + strata.log1p(-p.probs) - q._log_norm() - strata.log1p(-q.probs)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    batch = strata.broadcast_shapes(p.batch_shape, q.batch_shape)
    n = p.event_shape[0]
    a, b = (d.scale_tril.expand(*batch, n, n) for d in (p, q))
    logs = (b.diagonal(dim1=-2, dim2=-1).log() - a.diagonal(dim1=-2, dim2=-1).log()).sum(-1)
    trace = strata.linalg.solve_triangular(b, a, upper=False).square().sum((-2, -1))
    diff = (q.loc - p.loc).expand(*batch, n).unsqueeze(-1)
    distance = strata.linalg.solve_triangular(b, diff, upper=False).square().sum((-2, -1))
    return logs + 0.5 * (trace + distance - n)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    shift = p.loc - q.loc
    ratio = shift / p.scale
    first = math.sqrt(2 / math.pi) * p.scale * strata.exp(-0.5 * ratio.pow(2))
    second = shift * strata.erf(math.sqrt(0.5) * ratio)
    return -(p.scale / q.scale).log() + (first + second) / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    mean = (p.loc - q.loc) / q.scale
    spread = (p.scale / q.scale).pow(2)
    return mean + strata.exp(-mean + 0.5 * spread) - (p.scale / q.scale).log() - 0.5 * (1.0 + math.log(2 * math.pi))


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    shift = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return 0.5 * strata.log(0.5 * math.pi / ratio) + ratio + shift / variance - 1


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: two TransformedDistributions must have the same transforms")
    found = kl_divergence(p.base_dist, q.base_dist)
    return _sum_last(found, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: HalfCauchy, q: HalfCauchy) -> Tensor:
    """That of the Cauchy distributions around 0, whose densities are half of these on either side."""
    return 2 * (p.scale + q.scale).log() - (4 * p.scale * q.scale).log()
