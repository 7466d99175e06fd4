"""The logarithmic normal distribution."""

from __future__ import annotations

from strata import Tensor

from . import constraints
from ._loc_scale import LocScale
from .normal import Normal
from .transformed_distribution import OfTransform
from .transforms import ExpTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogNormal"]


class LogNormal(LocScale, OfTransform):
    """exp of a normal variable of mean loc and standard deviation scale."""

    support = constraints.positive
    base_dist = property(lambda self: self._normal())
    transforms = property(lambda self: [ExpTransform()])

    def _normal(self) -> Normal:
        """The distribution of a sample's logarithm."""
        return Normal(self.loc, self.scale, validate_args=False)

    def _shown(self) -> dict[str, Tensor]:
        return {}

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
        return self._normal().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logarithm = value.log()
        return self._normal().log_prob(logarithm) - logarithm

    def cdf(self, value: Tensor) -> Tensor:
        """0 at 0, too, which is not of the support."""
        logarithm = value.log()
        if self._validates():
            self._normal()._validate_sample(logarithm)
        return self._normal().cdf(logarithm)

    def icdf(self, value: Tensor) -> Tensor:
        return self._normal().icdf(value).exp()

    def entropy(self) -> Tensor:
        return self._normal().entropy() + self.loc
