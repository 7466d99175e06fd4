"""More distributions of real numbers: half Cauchy, Pareto, Weibull, Kumaraswamy, von Mises, generalised Pareto."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from . import constraints
from .cauchy import Cauchy
from .distribution import Distribution, broadcast_all
from .exponential import Exponential
from .transformed_distribution import OfTransform, TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform
from .uniform import Uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["GeneralizedPareto", "HalfCauchy", "Kumaraswamy", "Pareto", "VonMises", "Weibull"]

_EULER = 0.57721566490153286060


class HalfCauchy(OfTransform):
    """|x| of a Cauchy variable around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist = property(lambda self: self._cauchy())
    transforms = property(lambda self: [AbsTransform()])

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _cauchy(self) -> Cauchy:
        return Cauchy(0.0, self.scale, validate_args=False)

    def _shown(self) -> dict[str, Tensor]:
        return {}

    @property
    def mean(self) -> Tensor:
        return strata.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self) -> Tensor:
        return strata.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self._cauchy().variance

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._cauchy().rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value = strata.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return strata.where(value >= 0, self._cauchy().log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return 2 * self._cauchy().cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._cauchy().icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self._cauchy().entropy() - math.log(2)


class Pareto(TransformedDistribution):
    """Density proportional to x ** (-alpha - 1) above scale."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Pareto:
        return self._alike(Pareto(self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=False))

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @property
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """scale * x ** (1 / concentration) of an exponential variable of rate 1."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(strata.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration.reciprocal()), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Weibull:
        return self._alike(Weibull(self.scale.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False))

    @property
    def mean(self) -> Tensor:
        return self.scale * strata.exp(strata.lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        square = strata.exp(2 * strata.lgamma(1 + inverse))
        return self.scale.pow(2) * (strata.exp(strata.lgamma(1 + 2 * inverse)) - square)

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return _EULER * (1 - inverse) + strata.log(self.scale * inverse) + 1


class Kumaraswamy(TransformedDistribution):
    """Between 0 and 1, with cdf 1 - (1 - x ** concentration1) ** concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(strata.zeros_like(self.concentration0), strata.ones_like(self.concentration0), validate_args=validate_args)
        steps = [
            PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Kumaraswamy:
        return self._alike(Kumaraswamy(self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape), validate_args=False))

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        one = 1 + n / a
        return b * strata.exp(strata.lgamma(one) + strata.lgamma(b) - strata.lgamma(one + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        found = (a.reciprocal() * (-b).log1p() - a.reciprocal() * (-a * b).log1p()).exp()
        found = strata.where((a > 1) & (b > 1), ((a - 1) / (a * b - 1)) ** a.reciprocal(), found)
        return found.masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = strata.digamma(b + 1) + _EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class VonMises(Distribution):
    """Angles, with density proportional to exp(concentration * cos(x - loc)). Samples: doi:10.2307/2346732."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        k = self.concentration
        # log I0(k) = k + log(exp(-k) I0(k)), which does not overflow.
        bessel = k + strata.special.i0e(k).log()
        return k * strata.cos(value - self.loc) - math.log(2 * math.pi) - bessel

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with strata.no_grad():
            loc, k = (p.double().expand(shape) for p in (self.loc, self.concentration))
            k = strata.where(k < 0, strata.nan, k.clamp(min=1e-300))  # so small that 1 / k is still finite: uniform
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = strata.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
            # Where 1 + rho**2 rounds to 2 * rho, nothing would ever be accepted; it is a normal distribution by then.
            narrow = k > 1e8
            x = strata.randn_like(k) / k.sqrt() if bool(narrow.any()) else strata.zeros_like(k)
            done = narrow | k.isnan()
            x = x.masked_fill(k.isnan(), strata.nan)
            while not bool(done.all()):
                u1, u2, u3 = strata.rand((3, *shape), dtype=strata.float64, device=k.device).unbind()
                z = strata.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                taken = ~done & ((c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0))
                x = strata.where(taken, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), x)
                done = done | taken
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """1 minus the mean of cos(x - loc)."""
        k = self.concentration
        return 1 - strata.special.i1e(k) / strata.special.i0e(k)


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold loc; concentration 0 is the exponential distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        upper = strata.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Whether the concentration is next to 0, and one that can be divided by."""
        flat = self.concentration.abs() <= 1e-8
        return flat, strata.where(flat, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(strata.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        z = (value - self.loc) / self.scale
        flat, k = self._shape()
        return -self.scale.log() - strata.where(flat, z, (1 / k + 1) * strata.log1p(k * z))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf(value))."""
        self._checked(value)
        z = (value - self.loc) / self.scale
        flat, k = self._shape()
        return strata.where(flat, -z, -strata.log1p(k * z) / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf(value))."""
        return strata.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        flat, k = self._shape()
        u = strata.log1p(-value)
        return strata.where(flat, self.loc - self.scale * u, self.loc + self.scale / k * strata.expm1(-k * u))

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        k = strata.where(valid, self.concentration, 0.5)
        return strata.where(valid, self.loc + self.scale / (1 - k), math.nan)

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        k = strata.where(valid, self.concentration, 0.25)
        return strata.where(valid, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
