"""The logarithmic normal distribution."""

from __future__ import annotations

from strata import Tensor

from . import constraints
from .normal import Normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogNormal"]


class LogNormal(Normal):
    """exp of a normal variable of mean loc and standard deviation scale."""

    support = constraints.positive

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return Normal(self.loc, self.scale, validate_args=False).log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return Normal(self.loc, self.scale, validate_args=False).cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc
