"""Muon: momentum whose updates are made orthogonal. Source: Jordan et al., 2024 (kellerjordan.github.io/posts/muon)."""

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

__all__ = ["Muon"]


class Muon(FusedOptimizer):
    """For matrices between layers; biases, norms and embeddings go to another optimiser.

    ns_coefficients, ns_steps, eps: of the Newton-Schulz steps. adjust_lr_fn: "original" (lr * sqrt(max(1, rows /
    columns)), also for None) or "match_rms_adamw" (lr * 0.2 * sqrt(max(rows, columns))). ValueError for parameters that
    are no matrices, or a setting out of range.
    """

    _options = ("weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps")

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

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_muon_

    def _arguments(self, group: dict[str, Any], dtype: strata.dtype) -> dict[str, Any]:
        return {**super()._arguments(group, dtype), "match_rms": group["adjust_lr_fn"] == "match_rms_adamw"}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        buffers = [self.state[parameter]["momentum_buffer"] for parameter in params]
        self._call(group, (params, grads, buffers), {})
