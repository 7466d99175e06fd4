"""Mixtures of distributions of one family."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A sample of the component that mixture_distribution (a Categorical) draws; the components are the last batch dim."""

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of strata.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of strata.distributions.Distribution")
        batch = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        km, kc = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = km
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MixtureSameFamily:
        components = self._component_distribution.expand([*batch_shape, self._num_component])
        return self._alike(MixtureSameFamily(self._mixture_distribution.expand(batch_shape), components, validate_args=False))

    def _weights(self) -> Tensor:
        """The probabilities of the components, with dims of ones for the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self._component_distribution.variance).sum(dim)
        between = (weights * (self._component_distribution.mean - self.mean.unsqueeze(dim)).pow(2)).sum(dim)
        return within + between

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            count = len(sample_shape) + len(self._batch_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(*chosen.shape, 1, *[1] * self._event_ndims)
            index = index.expand(*chosen.shape, 1, *self._event_shape)
            return samples.gather(count, index).squeeze(count)

    def _mixed(self, values: Tensor) -> Tensor:
        return strata.logsumexp(values + strata.log_softmax(self._mixture_distribution.logits, -1), -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._mixed(self._component_distribution.log_prob(value.unsqueeze(-1 - self._event_ndims)))

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(value.unsqueeze(-1 - self._event_ndims))
        return (each * self._mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
