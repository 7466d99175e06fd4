"""The exponential distribution."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from .distribution import broadcast_all
from .exp_family import ExponentialFamily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Density rate * exp(-rate * x)."""

    arg_constraints = {"rate": constraints.positive}
    has_rsample = True
    support = constraints.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return strata.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = strata.rand(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device)
        return -strata.log1p(-u) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return 1 - strata.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -strata.log1p(-value) / self.rate

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -strata.log(-x)

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()
