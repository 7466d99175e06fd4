"""Averaged stochastic gradient descent. Source: Polyak and Juditsky, 1992; schedule of Bottou, 2010."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer, as_scalar
from .optimizer import new_step, scalar_dtype, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["ASGD"]


class ASGD(FusedOptimizer):
    """p = (1 - lambd eta) p - eta grad with eta = lr / (1 + lambd lr t) ** alpha; `state[p]["ax"]` is the mean of p
    from step t0 on, p itself before. ValueError for a setting out of range.
    """

    _buffers = ("ax", "eta", "mu")
    _options = ("lambd", "alpha", "t0", "weight_decay", "maximize")

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
        like = {"dtype": scalar_dtype(), "device": parameter.device}
        return {
            "step": new_step(parameter),
            "eta": strata.zeros((), **like).copy_(as_scalar(group["lr"])),
            "mu": strata.ones((), **like),
            "ax": strata.zeros_like(parameter),
        }

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_asgd_
