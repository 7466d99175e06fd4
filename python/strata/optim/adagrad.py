"""Adagrad. Source: Duchi et al., JMLR 12, 2011."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer
from .optimizer import add_at, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["Adagrad"]


class Adagrad(FusedOptimizer):
    """sum += grad ** 2; p -= lr / (1 + (t - 1) * lr_decay) * grad / (sqrt(sum) + eps).

    ValueError for a negative setting. The state is made at once, with sum = initial_accumulator_value.
    """

    _buffers = ("sum",)
    _options = ("lr_decay", "weight_decay", "eps", "maximize")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, settings(locals(), "lr_decay weight_decay initial_accumulator_value eps"))
        if fused:
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            self._make_state(group, group["params"])

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_adagrad_

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        state = super()._new_state(group, parameter)
        total = state["sum"]
        (strata.view_as_real(total) if total.is_complex() else total).fill_(group["initial_accumulator_value"])
        return state

    def _update_places(self, group: dict[str, Any], parameter: Tensor, places: Tensor, values: Tensor) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self.state[parameter]
        state["step"] += 1
        rate = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
        add_at(state["sum"], places, values.square())
        deviation = state["sum"][tuple(places)].sqrt_().add_(group["eps"])
        add_at(parameter, places, values / deviation, -rate)
