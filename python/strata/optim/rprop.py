"""Resilient propagation. Source: Riedmiller and Braun, 1993, in the form without weight backtracking."""

from __future__ import annotations

import strata
from strata import Tensor

from ._plain import PlainOptimizer
from .optimizer import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["Rprop"]


class Rprop(PlainOptimizer):
    """Each element has a step size of its own: larger while the gradient keeps its sign, smaller where it turns.

    etas: factors for a turn (0 to 1) and for the same sign (above 1). step_sizes: their least and largest. For whole
    batches. ValueError for a setting out of range.
    """

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
        size = float(group["lr"])
        full = complex(size, size) if parameter.is_complex() else size
        return {**state, "prev": strata.zeros_like(parameter), "step_size": strata.full_like(parameter, full)}

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        shrink, grow = group["etas"]
        agreement = grad * state["prev"]
        factor = strata.ones_like(grad).masked_fill_(agreement > 0, grow).masked_fill_(agreement < 0, shrink)
        state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(agreement < 0, 0)
        p.addcmul_(grad.sign(), state["step_size"], value=-1)
        state["prev"].copy_(grad)
