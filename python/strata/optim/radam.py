"""RAdam. Source: arXiv:1908.03265."""

from __future__ import annotations

import math

from strata import Tensor
from strata._C import _power

from ._plain import PlainOptimizer
from .optimizer import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["RAdam"]


class RAdam(PlainOptimizer):
    """Adam whose division by sqrt(v) begins, rectified, once v's estimate has a bounded variance.

    ValueError for a setting out of range.
    """

    _buffers = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "eps weight_decay"))

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        beta1, beta2 = group["betas"]
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        power2 = _power(beta2, step)
        correction2 = 1 - power2
        update = state["exp_avg"] / (1 - _power(beta1, step)) * lr
        # Length of the simple moving average that the exponential one is like: at the end, and now.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * power2 / correction2
        if length > 5.0:
            variance = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            root = state["exp_avg_sq"].sqrt().add_(group["eps"])
            update = update * (math.sqrt(correction2) / root) * math.sqrt(variance)
        p.sub_(update)
