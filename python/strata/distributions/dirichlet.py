"""The Dirichlet and beta distributions."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from ._standard_gamma import standard_gamma
from .distribution import broadcast_all
from .exp_family import ExponentialFamily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Beta", "Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Parts of 1, with density proportional to the product of x ** (concentration - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        parts = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        limits = strata.finfo(parts.dtype)
        return (parts / parts.sum(-1, keepdim=True)).clamp(min=limits.tiny, max=1 - limits.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        a = self.concentration
        return strata.xlogy(a - 1.0, value).sum(-1) + strata.lgamma(a.sum(-1)) - strata.lgamma(a).sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(-1, keepdim=True)
        corner = strata.nn.functional.one_hot(mode.nan_to_num(0.0).argmax(-1), above.shape[-1]).to(mode)
        return strata.where(flat, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a = self.concentration
        k, total = a.size(-1), a.sum(-1)
        return (
            strata.lgamma(a).sum(-1) - strata.lgamma(total) - (k - total) * strata.digamma(total)
            - ((a - 1.0) * strata.digamma(a)).sum(-1)
        )  # fmt: skip

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Dirichlet:
        shape = strata.Size([*batch_shape, *self._event_shape])
        return self._alike(type(self)(self.concentration.expand(shape), validate_args=False))


class Beta(ExponentialFamily):
    """A share of 1 with density proportional to x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = broadcast_all(concentration1, concentration0)
        both = [c if c.is_floating_point() else c.to(strata.get_default_dtype()) for c in both]
        self._dirichlet = Dirichlet(strata.stack(both, -1), validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Beta:
        shape = strata.Size(batch_shape)
        return self._alike(Beta(self.concentration1.expand(shape), self.concentration0.expand(shape), validate_args=False))

    @property
    def concentration1(self) -> Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._dirichlet.log_prob(strata.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()
