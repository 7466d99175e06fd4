"""RMSprop. Sources: Hinton's lecture 6e; the centred form, arXiv:1308.0850."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import as_scalar, by_kind
from .optimizer import Optimizer, new_step, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """v is a running mean of grad ** 2 with factor alpha; p -= lr * grad / (sqrt(v) + eps).

    centered: v less the square of a running mean of grad. momentum: buf = momentum * buf + grad / (sqrt(v) + eps),
    p -= lr * buf. foreach, capturable: accepted. ValueError for a negative setting.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, settings(locals(), "eps momentum weight_decay alpha"))

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return {"step": new_step(parameter), **{name: strata.zeros_like(parameter) for name in names}}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[parameter] for parameter in params]
        steps = [state["step"] for state in states]
        lists = [params, grads, [s["square_avg"] for s in states]]
        lists.append([s["grad_avg"] for s in states] if group["centered"] else [])
        lists.append([s["momentum_buffer"] for s in states] if group["momentum"] > 0 else [])
        strata._foreach_add_(steps, 1)
        for split in by_kind(*lists, steps):
            strata._fused_rmsprop_(
                *split,
                lr=as_scalar(group["lr"]),
                alpha=float(group["alpha"]),
                eps=float(group["eps"]),
                weight_decay=float(group["weight_decay"]),
                momentum=float(group["momentum"]),
                centered=group["centered"],
                maximize=group["maximize"],
            )
