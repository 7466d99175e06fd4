"""Continuous relaxations of discrete distributions, the logistic normal and the continuous Bernoulli."""

from __future__ import annotations

import math

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints, transforms
from ._by_probability import ByProbability, clamped
from .categorical import Categorical
from .distribution import Distribution, broadcast_all
from .normal import Normal
from .transformed_distribution import TransformedDistribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "ContinuousBernoulli", "ExpRelaxedCategorical", "LogisticNormal", "LogitRelaxedBernoulli", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


def _as_temperature(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else strata.tensor(float(value), dtype=like.dtype, device=like.device)


class LogitRelaxedBernoulli(ByProbability):
    """The logit of a RelaxedBernoulli. Source: arXiv:1611.00712."""

    has_rsample = True
    support = constraints.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)
        self.temperature = temperature

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> LogitRelaxedBernoulli:
        new = super().expand(batch_shape)
        new.temperature, new._given = self.temperature, self._given
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamped(self.probs.expand(shape))
        u = clamped(strata.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return _as_temperature(self.temperature, diff).log() + diff - 2 * diff.exp().log1p()


class _Relaxed(TransformedDistribution):
    """Parameters are those of the distribution that is transformed."""

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Values between 0 and 1 that near a Bernoulli's as the temperature falls. Source: arXiv:1611.00712."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, transforms.SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> RelaxedBernoulli:
        given = self.base_dist._given
        return RelaxedBernoulli(self.temperature, **{given: getattr(self, given).expand(batch_shape)})


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a RelaxedOneHotCategorical. Source: arXiv:1611.00712."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self._given = "logits" if probs is None else "probs"
        self.temperature = temperature
        shape = self.logits.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> ExpRelaxedCategorical:
        value = getattr(self, self._given).expand(*batch_shape, -1)
        return self._alike(ExpRelaxedCategorical(self.temperature, **{self._given: value}, validate_args=False))

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamped(strata.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._event_shape[0]
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        t = _as_temperature(self.temperature, logits)
        scale = t.new_tensor(float(n)).lgamma() - t.log().mul(-(n - 1))
        score = logits - value.mul(t)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Parts of 1 that near a OneHotCategorical's rows as the temperature falls. Source: arXiv:1611.00712."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, transforms.ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> RelaxedOneHotCategorical:
        given = self.base_dist._given
        value = getattr(self, given).expand(*batch_shape, -1)
        return self._alike(RelaxedOneHotCategorical(self.temperature, **{given: value}, validate_args=False))


class LogisticNormal(TransformedDistribution):
    """Parts of 1: a normal vector through the stick-breaking transform."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor, scale: Tensor, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, transforms.StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> LogisticNormal:
        return self._alike(LogisticNormal(self.loc.expand(*batch_shape, -1), self.scale.expand(*batch_shape, -1), validate_args=False))

    @property
    def loc(self) -> Tensor:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.base_dist.scale


class ContinuousBernoulli(ByProbability):
    """Density proportional to probs ** x * (1 - probs) ** (1 - x) on [0, 1]. Source: arXiv:1907.06845.

    lims: between these probabilities, around 1/2, series take the place of formulas that lose their digits there.
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args and not bool(constraints.unit_interval.check(probs).all()):
                raise ValueError("The parameter probs has invalid values")
            probs = clamped(probs)
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if probs is None:
            self.probs = clamped(self.logits.sigmoid())

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> ContinuousBernoulli:
        given = {self._given: getattr(self, self._given).expand(batch_shape)}
        return self._alike(ContinuousBernoulli(**given, lims=self._lims, validate_args=False))

    def _away(self) -> Tensor:
        """Where the formulas hold their digits."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return strata.where(self._away(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        p = self._cut()
        below, above = strata.where(p <= 0.5, p, 0.0), strata.where(p >= 0.5, p, 1.0)
        norm = (strata.log1p(-p) - p.log()).abs().log()
        norm = norm - strata.where(p <= 0.5, strata.log1p(-2.0 * below), strata.log(2.0 * above - 1.0))
        x = (self.probs - 0.5).pow(2)
        return strata.where(self._away(), norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        found = p / (2.0 * p - 1.0) + 1.0 / (strata.log1p(-p) - p.log())
        x = self.probs - 0.5
        return strata.where(self._away(), found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (strata.log1p(-p) - p.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        return strata.where(self._away(), found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = strata.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        p = self._cut()
        inside = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        return strata.where(self._away(), inside, value).masked_fill(value <= 0, 0.0).masked_fill(value >= 1, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        low = strata.log1p(-p)
        found = (strata.log1p(-p + value * (2.0 * p - 1.0)) - low) / (p.log() - low)
        return strata.where(self._away(), found, value)

    def entropy(self) -> Tensor:
        low, high = strata.log1p(-self.probs), self.probs.log()
        return self.mean * (low - high) - self._log_norm() - low
