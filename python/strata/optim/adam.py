"""Adam. Sources: Adam, arXiv:1412.6980; the amsgrad variant, arXiv:1904.09237."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import as_scalar, by_kind, scaling
from .optimizer import Optimizer, new_step, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["Adam"]


class Adam(Optimizer):
    """m and v are running means of grad and grad ** 2; p -= lr / (1 - b1 ** t) * m / (sqrt(v / (1 - b2 ** t)) + eps).

    weight_decay is added to the gradient, or taken from p first where decoupled_weight_decay; amsgrad: v's maximum so
    far stands for v. foreach, fused, capturable: accepted; one fused kernel serves all. ValueError for a setting out
    of range.
    """

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

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        names = ["exp_avg", "exp_avg_sq"] + (["max_exp_avg_sq"] if group["amsgrad"] else [])
        return {"step": new_step(parameter), **{name: strata.zeros_like(parameter) for name in names}}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[parameter] for parameter in params]
        steps = [state["step"] for state in states]
        lists = [params, grads, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]]
        lists.append([s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [])
        kernel = strata._fused_adamw_ if group["decoupled_weight_decay"] else strata._fused_adam_
        scaled = scaling(self)
        strata._foreach_add_(steps, 1)
        for split in by_kind(*lists, steps):
            kernel(
                *split,
                lr=as_scalar(group["lr"]),
                beta1=float(group["betas"][0]),
                beta2=float(group["betas"][1]),
                weight_decay=float(group["weight_decay"]),
                eps=group["eps"],
                amsgrad=group["amsgrad"],
                maximize=group["maximize"],
                **scaled,
            )
        if "found_inf" in scaled:  # a skipped step does not count
            strata._foreach_sub_(steps, [scaled["found_inf"].reshape(())] * len(steps))
