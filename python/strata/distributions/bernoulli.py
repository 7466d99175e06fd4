"""The Bernoulli distribution."""

from __future__ import annotations

import math

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints
from ._by_probability import ByProbability
from .distribution import broadcast_all
from .exp_family import ExponentialFamily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Bernoulli"]


class Bernoulli(ByProbability, ExponentialFamily):
    """1 with probability probs, else 0."""

    has_enumerate_support = True
    support = constraints.boolean

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            return strata.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (strata.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return strata.log1p(strata.exp(x))

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = strata.arange(2, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
