"""Distributions of one probability of success each, given as such or by its logit."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from .distribution import Distribution, broadcast_all, lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ByProbability", "clamped"]


def clamped(probs: Tensor) -> Tensor:
    eps = strata.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


class ByProbability(Distribution):
    """One probability of success each."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = broadcast_all(logits if probs is None else probs)
        setattr(self, "logits" if probs is None else "probs", given)
        self._given = "logits" if probs is None else "probs"
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def param_shape(self) -> strata.Size:
        """The shape of what was given."""
        return getattr(self, self._given).size()

    @lazily
    def probs(self) -> Tensor:
        """Probabilities of success."""
        return self.logits.sigmoid()

    @lazily
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        probs = clamped(self.probs)
        return probs.log() - (-probs).log1p()
