"""Adam for sparse gradients: moments of rows move only when the rows have a gradient. Source: arXiv:1412.6980."""

from __future__ import annotations

import math

import strata
from strata import _C, Tensor

from .optimizer import Optimizer, add_at, check_betas, check_lr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam over the rows that sparse gradients hold. ValueError for settings out of range; RuntimeError for dense gradients."""

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check_betas(betas)
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [i for group in self.param_groups for i, p in enumerate(group["params"]) if getattr(p, "is_sparse", False)]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        mixed = [[g, i] for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"]) if p.is_complex()]
        if mixed:  # squares of complex gradients are no second moments
            raise ValueError(f"Complex params at indices {mixed}: SparseAdam does not support complex parameters")

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        zeros = strata.zeros_like(parameter, memory_format=strata.preserve_format)
        return {"step": 0, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _update_places(self, group: dict[str, Any], parameter: Tensor, places: Tensor, values: Tensor) -> None:
        if not places.shape[1]:
            return
        state, (beta1, beta2) = self.state[parameter], group["betas"]
        state["step"] += 1
        moments = []
        for name, beta, new in (("exp_avg", beta1, values), ("exp_avg_sq", beta2, values.square())):
            old = state[name][tuple(places)]
            change = (new - old) * (1 - beta)
            add_at(state[name], places, change)
            moments.append(change + old)
        first, second = moments
        step = int(state["step"])
        rate = float(group["lr"]) * math.sqrt(1 - _C._power(beta2, step)) / (1 - _C._power(beta1, step))  # the same everywhere
        add_at(parameter, places, first / second.sqrt().add_(group["eps"]), -rate)
