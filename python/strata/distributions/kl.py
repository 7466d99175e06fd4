"""Kullback-Leibler divergences in closed form, by the classes of both distributions."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from .bernoulli import Bernoulli
from .categorical import Categorical
from .cauchy import Cauchy
from .distribution import Distribution
from .exponential import Exponential
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent, _sum_last
from .laplace import Laplace
from .log_normal import LogNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .uniform import Uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Distribution, Distribution], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """A decorator: the function gives the divergence of those classes and the classes below them."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected type to be a Distribution subclass but got {kind}")

    def add(function: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return add


def _no_formula(p: Distribution, q: Distribution) -> NotImplementedError:
    return NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}: estimate it by "
        "(p.log_prob(x) - q.log_prob(x)).mean(0) over samples x of p, or add a formula with register_kl"
    )


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean over p of log p - log q, of the batch shape. NotImplementedError where no formula is registered."""
    formula = _formula(p, q)
    if formula is None:
        from . import _kl_moments, _kl_more  # noqa: F401  register the others

        formula = _formula(p, q)
    if formula is None:
        raise _no_formula(p, q)
    return formula(p, q)


def _formula(p: Distribution, q: Distribution) -> Callable | None:
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (kind_p, kind_q) in _KL_REGISTRY:
                return _KL_REGISTRY[kind_p, kind_q]
    return None


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p._normal(), q._normal())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """Infinite where p can give what q cannot: the logits of probabilities 0 and 1 are clamped, so both are masked."""
    softplus = strata.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    return one + zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = t.masked_fill((q.probs == 0).expand_as(t), math.inf)
    return t.masked_fill((p.probs == 0).expand_as(t), 0).sum(-1)


@register_kl(Categorical, OneHotCategorical)
@register_kl(OneHotCategorical, Categorical)
def _other_events(p: Categorical, q: Categorical) -> Tensor:
    raise _no_formula(p, q)  # one draws class numbers, the other rows


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p, q)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - strata.log1p(-q.probs) / p.probs - q.logits


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * strata.exp(-away / p.scale) - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    euler = 0.57721566490153286060
    ratio = p.scale / q.scale
    shift = (q.loc - p.loc) / q.scale
    return -ratio.log() - shift + ratio * euler + (shift + (1 + ratio).lgamma()).exp() - (1 + euler)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Source: arXiv:1905.10965."""
    above = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return above.log() - (4 * p.scale * q.scale).log()


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    start = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return start + ((width**2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / (2 * q.scale**2)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: the two Independent must reinterpret the same number of dims")
    return _sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
