"""Adam. Sources: Adam, arXiv:1412.6980; the amsgrad variant, arXiv:1904.09237."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer
from .optimizer import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["Adam"]


class Adam(FusedOptimizer):
    """m and v are running means of grad and grad ** 2; p -= lr / (1 - b1 ** t) * m / (sqrt(v / (1 - b2 ** t)) + eps).

    weight_decay is added to the gradient, or taken from p first where decoupled_weight_decay; amsgrad: v's maximum so
    far stands for v. foreach, fused, capturable: accepted; one fused kernel serves all. ValueError for a setting out
    of range.
    """

    _options = ("weight_decay", "eps", "amsgrad", "maximize")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "eps weight_decay"))
        if fused:
            self._step_supports_amp_scaling = True

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_adamw_ if group["decoupled_weight_decay"] else strata._fused_adam_

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else ""
