"""Averaged stochastic gradient descent. Source: Polyak and Juditsky, 1992; schedule of Bottou, 2010."""

from __future__ import annotations

import strata
from strata import Tensor
from strata._C import _power

from ._plain import PlainOptimizer
from .optimizer import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["ASGD"]


class ASGD(PlainOptimizer):
    """p = (1 - lambd eta) p - eta grad with eta = lr / (1 + lambd lr t) ** alpha; `state[p]["ax"]` is the mean of p
    from step t0 on, p itself before. ValueError for a setting out of range.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "weight_decay"))

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        state = super()._new_state(group, parameter)
        like = {"dtype": strata.float32, "device": parameter.device}
        return {
            **state,
            "eta": strata.tensor(float(group["lr"]), **like),
            "mu": strata.ones((), **like),
            "ax": strata.zeros_like(parameter),
        }

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        eta, mu = float(state["eta"]), float(state["mu"])
        p.mul_(1 - group["lambd"] * eta).add_(grad, alpha=-eta)
        if mu == 1:
            state["ax"].copy_(p)
        else:
            state["ax"].lerp_(p, mu)
        state["eta"].fill_(lr / _power(1 + group["lambd"] * lr * step, group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
