"""The categorical distribution."""

from __future__ import annotations

import math

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints
from ._by_probability import clamped
from .distribution import Distribution, lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ByClass", "Categorical"]


class ByClass(Distribution):
    """One of several classes, of probs (*, classes), made to sum to 1, or logits (*, classes)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{'logits' if probs is None else 'probs'}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._given = "logits" if probs is None else "probs"
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazily
    def probs(self) -> Tensor:
        """Probabilities of the classes."""
        return F.softmax(self.logits, dim=-1)

    @lazily
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return clamped(self.probs).log()

    @property
    def _classes(self) -> int:
        return (self.logits if "logits" in self.__dict__ else self.probs).size(-1)

    @property
    def param_shape(self) -> strata.Size:
        """The shape of probs."""
        return strata.Size([*self._batch_shape, self._classes])

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=strata.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    @property
    def _num_events(self) -> int:
        return self._classes

    @property
    def _param(self) -> Tensor:
        return getattr(self, self._given)


class Categorical(ByClass):
    """A class number from 0: probs (*, classes), made to sum to 1, or logits (*, classes)."""

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._classes - 1)

    @property
    def mean(self) -> Tensor:
        return strata.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """int64 class numbers of shape sample_shape + batch_shape."""
        count = math.prod(sample_shape)
        with strata.no_grad():
            flat = self.probs.reshape(-1, self._classes)
            return strata.multinomial(flat, count, True).t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value, logits = strata.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = strata.arange(self._classes, device=self.probs.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
