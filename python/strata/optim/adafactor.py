"""Adafactor. Source: arXiv:1804.04235, algorithms 4 and 5."""

from __future__ import annotations

import math

import strata
from strata import Tensor
from strata._C import _power

from .optimizer import Optimizer, new_step, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Second moments of matrices as a product of row and column means: memory grows with rows + columns.

    lr: the largest relative step; beta2 = 1 - step ** beta2_decay. eps: the least second moment (None: the dtype's
    epsilon) and the least size of a parameter that scales its step. d: where updates are clipped. ValueError for a
    setting out of range.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = settings(locals(), "weight_decay")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, defaults)

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        shape = list(parameter.shape)
        if len(shape) < 2:
            return {"step": new_step(parameter), "variance": strata.zeros_like(parameter)}
        return {
            "step": new_step(parameter),
            "row_var": parameter.new_zeros([*shape[:-1], 1]),
            "col_var": parameter.new_zeros([*shape[:-2], 1, shape[-1]]),
        }

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        for p, grad in zip(params, grads, strict=True):
            state = self.state[p]
            state["step"] += 1
            step = float(state["step"])
            least = strata.finfo(p.dtype).eps if eps1 is None else eps1
            grad = -grad if group["maximize"] else grad
            weight = _power(step, group["beta2_decay"])
            relative = max(eps2, float(p.norm()) / math.sqrt(p.numel())) * min(lr, 1 / math.sqrt(step))
            if group["weight_decay"] != 0:
                p.mul_(1 - lr * group["weight_decay"])
            square = grad.square()
            if "variance" in state:
                moment = state["variance"].lerp_(square, weight).clone()
            else:
                rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
                columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
                moment = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=least))
            update = moment.clamp_(min=least * least).rsqrt_().mul_(grad)
            clip = max(1.0, float(update.norm()) / (math.sqrt(update.numel()) * group["d"]))
            p.add_(update, alpha=-relative / clip)
