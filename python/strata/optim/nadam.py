"""NAdam. Source: Dozat, ICLR workshop 2016, "Incorporating Nesterov Momentum into Adam"."""

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

__all__ = ["NAdam"]


class NAdam(PlainOptimizer):
    """Adam with Nesterov's momentum, whose factor is mu(t) = b1 * (1 - 0.96 ** (t * momentum_decay) / 2).

    ValueError for a setting out of range.
    """

    _buffers = ("exp_avg", "exp_avg_sq")

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
        product = strata.ones((), dtype=strata.float32, device=parameter.device)
        return {"step": state.pop("step"), "mu_product": product, **state}

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        beta1, beta2 = group["betas"]
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * _power(0.96, step * decay))
        mu_next = beta1 * (1.0 - 0.5 * _power(0.96, (step + 1) * decay))
        product = float(state["mu_product"].mul_(mu))
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = state["exp_avg_sq"].div(1 - _power(beta2, step)).sqrt_().add_(group["eps"])
        p.addcdiv_(grad, root, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(state["exp_avg"], root, value=-lr * mu_next / (1.0 - product * mu_next))
