"""Adagrad. Source: Duchi et al., JMLR 12, 2011."""

from __future__ import annotations

import strata
from strata import Tensor

from ._plain import PlainOptimizer
from .optimizer import new_step, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["Adagrad"]


class Adagrad(PlainOptimizer):
    """sum += grad ** 2; p -= lr / (1 + (t - 1) * lr_decay) * grad / (sqrt(sum) + eps).

    ValueError for a negative setting. The state is made at once, with sum = initial_accumulator_value.
    """

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
        for group in self.param_groups:
            self._make_state(group, group["params"])

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        start = complex(start, start) if parameter.is_complex() else start
        return {"step": new_step(parameter), "sum": strata.full_like(parameter, start, requires_grad=False)}

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        total = state["sum"].addcmul_(grad, grad)
        p.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-lr / (1 + (step - 1) * group["lr_decay"]))
