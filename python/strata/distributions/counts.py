"""Distributions of counts: Poisson, binomial, negative binomial, multinomial."""

from __future__ import annotations

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution, broadcast_all, lazily
from .exp_family import ExponentialFamily
from .gamma import Gamma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Binomial", "Multinomial", "NegativeBinomial", "Poisson"]


class Poisson(ExponentialFamily):
    """The number of events where `rate` are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            return strata.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return strata.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()

    def entropy(self) -> Tensor:
        raise NotImplementedError("Poisson defines no entropy: it has no closed form")


class _Trials(Distribution):
    """total_count and one probability, or its logit, each."""

    total_count: Tensor

    def _take(self, total_count: Any, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"
        given = logits if probs is None else probs
        self.total_count, given = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(given)
        setattr(self, self._given, given)

    @lazily
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.logits.sigmoid()

    @lazily
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        eps = strata.finfo(self.probs.dtype).eps
        probs = self.probs.clamp(min=eps, max=1 - eps)
        return probs.log() - (-probs).log1p()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        shape = strata.Size(batch_shape)
        given = {self._given: getattr(self, self._given).expand(shape)}
        return self._alike(type(self)(self.total_count.expand(shape), **given, validate_args=False))


class Binomial(_Trials):
    """The number of successes in total_count trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(total_count, probs, logits)
        super().__init__(getattr(self, self._given).shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with strata.no_grad():
            return strata.binomial(self.total_count.expand(shape).contiguous(), self.probs.expand(shape).contiguous())

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        n, logits = self.total_count, self.logits
        ways = strata.lgamma(n + 1) - strata.lgamma(value + 1) - strata.lgamma(n - value + 1)
        return ways + value * logits - n * F.softplus(logits)

    def entropy(self) -> Tensor:
        n = self._single_count("Inhomogeneous total count not supported by `entropy`.")
        terms = self.log_prob(self.enumerate_support(False))
        return -(terms.exp() * terms).sum(0) if n else strata.zeros_like(self.probs)

    def _single_count(self, text: str) -> int:
        n = int(self.total_count.max())
        if int(self.total_count.min()) != n:
            raise NotImplementedError(text)
        return n

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._single_count("Inhomogeneous total count not supported by `enumerate_support`.")
        values = strata.arange(1 + n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class NegativeBinomial(_Trials):
    """The number of successes, each of probability probs, before total_count failures."""

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(total_count, probs, logits)
        super().__init__(getattr(self, self._given).shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * strata.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / strata.sigmoid(-self.logits)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            rate = Gamma(self.total_count, strata.exp(-self.logits), validate_args=False).sample(sample_shape)
            return strata.poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        n = self.total_count
        weight = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        norm = -strata.lgamma(n + value) + strata.lgamma(1.0 + value) + strata.lgamma(n)
        return weight - norm.masked_fill(n + value == 0.0, 0.0)


class Multinomial(Distribution):
    """How often each category came up in total_count draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._given = "logits" if probs is None else "probs"
        shape = self.probs.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Multinomial:
        shape = strata.Size([*batch_shape, *self._event_shape])
        given = {self._given: getattr(self, self._given).expand(shape)}
        return self._alike(Multinomial(self.total_count, **given, validate_args=False))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        draws = self._categorical.sample((self.total_count, *sample_shape))
        counts = F.one_hot(draws, self._event_shape[0]).sum(0)
        return counts.to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        ways = strata.lgamma(value.sum(-1) + 1) - strata.lgamma(value + 1).sum(-1)
        return ways + logits.masked_fill((value == 0) & (logits == -strata.inf), 0).mul(value).sum(-1)

    def entropy(self) -> Tensor:
        n = strata.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        single = self._categorical.entropy()
        counts = strata.arange(1, self.total_count + 1, dtype=self.probs.dtype, device=self.probs.device)
        counts = counts.view(-1, *[1] * self.probs.dim())
        chance = strata.exp(Binomial(n, probs=self.probs, validate_args=False).log_prob(counts))
        return n * single - strata.lgamma(n + 1) + (chance * strata.lgamma(counts + 1)).sum((0, -1))
