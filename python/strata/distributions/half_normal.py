"""The half normal distribution."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from . import constraints
from .distribution import broadcast_all
from .normal import Normal
from .transformed_distribution import OfTransform
from .transforms import AbsTransform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["HalfNormal"]


class HalfNormal(OfTransform):
    """|x| of a normal variable of mean 0 and standard deviation scale."""

    arg_constraints = {"scale": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative
    base_dist = property(lambda self: Normal(strata.zeros_like(self.scale), self.scale, validate_args=False))
    transforms = property(lambda self: [AbsTransform()])

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _shown(self) -> dict[str, Tensor]:
        return {}

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return strata.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return Normal(strata.zeros_like(self.scale), self.scale, validate_args=False).rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        inside = Normal(0.0, self.scale, validate_args=False).log_prob(value) + math.log(2)
        return strata.where(value >= 0, inside, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return 2 * Normal(0.0, self.scale, validate_args=False).cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return Normal(0.0, self.scale, validate_args=False).icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return Normal(0.0, self.scale, validate_args=False).entropy() - math.log(2)
