"""The distribution of a transformed sample."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent, _sum_last
from .transforms import ComposeTransform, Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["OfTransform", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of transforms applied, first to last, to samples of the base.

    ValueError where base's samples have fewer dims than the transforms' values; log_prob needs their inverses.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | list[Transform], validate_args: bool | None = None
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for t in self.transforms:
            if not isinstance(t, Transform):
                raise ValueError(f"transforms must be a Transform or a list of Transforms, but got {transforms!r}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        events = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        out = strata.Size(whole.forward_shape(shape))
        expanded = whole.inverse_shape(out)
        if shape != strata.Size(expanded):
            base_distribution = base_distribution.expand(expanded[: len(expanded) - events])
        more = whole.domain.event_dim - events
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        dims = max(whole.codomain.event_dim, events + whole.codomain.event_dim - whole.domain.event_dim)
        cut = len(out) - dims
        super().__init__(out[:cut], out[cut:], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> TransformedDistribution:
        shape = strata.Size([*batch_shape, *self._event_shape])
        for t in reversed(self.transforms):
            shape = strata.Size(t.inverse_shape(shape))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return self._alike(TransformedDistribution(base, self.transforms, validate_args=False))

    def _push(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            return self._push(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._push(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        dims, y, total = len(self.event_shape), value, 0.0
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - _sum_last(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + _sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _rises(self, value: Tensor) -> Tensor:
        """The value where the transforms rise, 1 - value where they fall."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        self.base_dist._checked(value)
        return self._rises(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._push(self.base_dist.icdf(self._rises(value)))


class OfTransform(TransformedDistribution):
    """A named distribution that transforms make, with formulas of its own. Subclasses give `base_dist` and `transforms`."""

    has_rsample = True
    sample = Distribution.sample
    expand = Distribution.expand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Distribution.__init__(self, *args, **kwargs)
