"""Resilient propagation. Source: Riedmiller and Braun, 1993, in the form without weight backtracking."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer, as_scalar
from .optimizer import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["Rprop"]


class Rprop(FusedOptimizer):
    """Each element has a step size of its own: larger while the gradient keeps its sign, smaller where it turns.

    etas: factors for a turn (0 to 1) and for the same sign (above 1). step_sizes: their least and largest. For whole
    batches. ValueError for a setting out of range.
    """

    _buffers = ("prev", "step_size")
    _options = ("maximize",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = settings(locals())
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        state = super()._new_state(group, parameter)
        size = state["step_size"]
        (strata.view_as_real(size) if size.is_complex() else size).copy_(as_scalar(group["lr"]))
        return state

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_rprop_

    def _arguments(self, group: dict[str, Any], dtype: strata.dtype) -> dict[str, Any]:
        found = super()._arguments(group, dtype)
        del found["lr"]  # the step sizes began with it
        found["shrink"], found["grow"] = group["etas"]
        found["least"], found["largest"] = group["step_sizes"]
        return found
