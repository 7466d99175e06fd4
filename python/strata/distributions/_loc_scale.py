"""Distributions of real numbers with a location and a scale."""

from __future__ import annotations

import strata
from strata import Tensor

from . import constraints
from .distribution import Distribution, broadcast_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["LocScale"]


class LocScale(Distribution):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    has_rsample = True
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _uniform(self, sample_shape: Sequence[int]) -> Tensor:
        """Uniform between 0 and 1, never 0."""
        shape = self._extended_shape(sample_shape)
        made = strata.rand(shape, dtype=self.scale.dtype, device=self.scale.device)
        return made.clamp(min=strata.finfo(self.scale.dtype).tiny)
