"""NAdam. Source: Dozat, ICLR workshop 2016, "Incorporating Nesterov Momentum into Adam"."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer
from .optimizer import scalar_dtype, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["NAdam"]


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum, whose factor is mu(t) = b1 * (1 - 0.96 ** (t * momentum_decay) / 2).

    ValueError for a setting out of range.
    """

    _buffers = ("mu_product", "exp_avg", "exp_avg_sq")
    _options = ("weight_decay", "eps", "momentum_decay", "decoupled_weight_decay", "maximize")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "eps weight_decay momentum_decay"))

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        state = super()._new_state(group, parameter)
        state["mu_product"] = strata.ones((), dtype=scalar_dtype(), device=parameter.device)
        return state

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_nadam_
