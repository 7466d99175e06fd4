"""Adamax. Source: arXiv:1412.6980, section 7."""

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

__all__ = ["Adamax"]


class Adamax(PlainOptimizer):
    """m is a running mean of grad, u = max(b2 * u, |grad| + eps); p -= lr / (1 - b1 ** t) * m / u.

    ValueError for a setting out of range.
    """

    _buffers = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "eps weight_decay"))

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(grad, 1 - beta1)
        largest.copy_(strata.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        p.addcdiv_(mean, largest, value=-lr / (1 - _power(beta1, step)))
