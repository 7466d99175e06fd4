"""The Gumbel distribution."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from ._loc_scale import LocScale
from .distribution import broadcast_all
from .transformed_distribution import OfTransform
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Gumbel"]


class Gumbel(LocScale, OfTransform):
    """Of the largest of many samples: cdf exp(-exp(-(x - loc) / scale))."""

    @property
    def base_dist(self) -> Uniform:
        info = strata.finfo(self.scale.dtype)
        return Uniform(strata.full_like(self.loc, info.tiny), strata.full_like(self.loc, 1 - info.eps), validate_args=False)

    @property
    def transforms(self) -> list:
        turned = AffineTransform(loc=0, scale=-strata.ones_like(self.scale))
        return [ExpTransform().inv, turned, ExpTransform().inv, AffineTransform(loc=self.loc, scale=-self.scale)]

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * 0.57721566490153286060

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = self._uniform(sample_shape).clamp(max=1 - strata.finfo(self.scale.dtype).eps)
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        value, _ = broadcast_all(value, self.loc)
        self._checked(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        u, _ = broadcast_all(value, self.loc)  # of the base, which leaves out 0 and 1: their values stay finite
        return self.loc - self.scale * (-self.base_dist.icdf(u).log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + 0.57721566490153286060)
