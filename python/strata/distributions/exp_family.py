"""The base of exponential families."""

from __future__ import annotations

import strata
from strata import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Density h(x) exp(<t(x), natural parameters> - log normaliser). Subclasses give `_natural_params` and
    `_log_normalizer(*params)`; entropy follows by differentiating the latter."""

    _mean_carrier_measure: float = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} gives no natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} gives no log normaliser")

    def entropy(self) -> Tensor:
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with strata.enable_grad():
            value = self._log_normalizer(*params)
        gradients = strata.autograd.grad(value.sum(), params, create_graph=True)
        result = value - self._mean_carrier_measure
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape(*self._batch_shape, -1).sum(-1)
        return result
