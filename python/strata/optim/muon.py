"""Muon: momentum whose updates are made orthogonal. Source: Jordan et al., 2024 (kellerjordan.github.io/posts/muon)."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from .optimizer import Optimizer, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["Muon"]


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Nearly U V^T of the singular value decomposition, by Newton-Schulz steps in bfloat16."""
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = matrix.size(0) > matrix.size(1)
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = strata.addmm(x, strata.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


class Muon(Optimizer):
    """For matrices between layers; biases, norms and embeddings go to another optimiser.

    ns_coefficients, ns_steps, eps: of the Newton-Schulz steps. adjust_lr_fn: "original" (lr * sqrt(max(1, rows /
    columns)), also for None) or "match_rms_adamw" (lr * 0.2 * sqrt(max(rows, columns))). ValueError for parameters that
    are no matrices, or a setting out of range.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = settings(locals(), "momentum weight_decay")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.shape}"
                    )

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"momentum_buffer": strata.zeros_like(parameter)}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for p, grad in zip(params, grads, strict=True):
            mean = self.state[p]["momentum_buffer"].lerp_(grad, 1 - momentum)
            update = grad.lerp(mean, momentum) if group["nesterov"] else mean
            update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rows, columns = p.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                factor = 0.2 * math.sqrt(max(rows, columns))
            else:
                factor = math.sqrt(max(1, rows / columns))
            p.mul_(1 - lr * group["weight_decay"]).add_(update, alpha=-lr * factor)
