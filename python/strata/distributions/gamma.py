"""The gamma distribution and its near kin: chi squared, inverse gamma."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from ._standard_gamma import standard_gamma
from .distribution import broadcast_all
from .exp_family import ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Chi2", "Gamma", "InverseGamma"]


class Gamma(ExponentialFamily):
    """Density proportional to x ** (concentration - 1) * exp(-rate * x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return value.clamp(min=strata.finfo(value.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = strata.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._checked(value)
        a = self.concentration
        return strata.xlogy(a, self.rate) + strata.xlogy(a - 1, value) - self.rate * value - strata.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - strata.log(self.rate) + strata.lgamma(a) + (1.0 - a) * strata.digamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return strata.special.gammainc(self.concentration, self.rate * value)


class Chi2(Gamma):
    """The sum of the squares of df normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        half = 0.5 * df
        super().__init__(half, strata.full_like(half, 0.5) if isinstance(half, Tensor) else 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Chi2:
        return self._alike(Chi2(self.df.expand(batch_shape), validate_args=False))

    @property
    def df(self) -> Tensor:
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """1 / x of a gamma variable."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    has_rsample = True
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> InverseGamma:
        return self._alike(InverseGamma(self.concentration.expand(batch_shape), self.rate.expand(batch_shape), validate_args=False))

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        return strata.where(self.concentration > 1, self.rate / (self.concentration - 1), strata.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return strata.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), strata.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
