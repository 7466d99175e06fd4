"""The Laplace distribution."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from ._loc_scale import LocScale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Laplace"]


class Laplace(LocScale):
    """Density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._uniform(sample_shape) - 0.5
        least = strata.finfo(u.dtype).tiny
        return self.loc - self.scale * u.sign() * strata.log1p(-2 * u.abs()).clamp(min=math.log(least))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return -strata.log(2 * self.scale) - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * strata.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * strata.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + strata.log(2 * self.scale)
