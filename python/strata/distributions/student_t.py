"""Student's t and the F distribution."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from . import constraints
from .distribution import Distribution, broadcast_all
from .gamma import Chi2, Gamma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["FisherSnedecor", "StudentT"]


class StudentT(Distribution):
    """loc + scale * t, where t has df degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale.pow(2) * self.df / (self.df - 2)
        return found.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = strata.randn(shape, dtype=self.df.dtype, device=self.df.device)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * x * strata.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        y, df = (value - self.loc) / self.scale, self.df
        norm = (
            self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + strata.lgamma(0.5 * df)
            - strata.lgamma(0.5 * (df + 1.0))
        )  # fmt: skip
        return -0.5 * (df + 1.0) * strata.log1p(y**2.0 / df) - norm

    def entropy(self) -> Tensor:
        df = self.df
        beta = strata.lgamma(0.5 * df) + math.lgamma(0.5) - strata.lgamma(0.5 * (1 + df))
        return (
            self.scale.log() + 0.5 * (df + 1) * (strata.digamma(0.5 * (df + 1)) - strata.digamma(0.5 * df)) + 0.5 * df.log()
            + beta
        )  # fmt: skip


class FisherSnedecor(Distribution):
    """The ratio of two chi squared variables, each divided by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return strata.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        found = 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4))
        return strata.where(b > 4, found, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        above, below = (Gamma(df * 0.5, df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        tiny = strata.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        norm = strata.lgamma(a + b) - strata.lgamma(a) - strata.lgamma(b)
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * strata.log1p(ratio * value)
