"""Adadelta. Source: arXiv:1212.5701."""

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

__all__ = ["Adadelta"]


class Adadelta(FusedOptimizer):
    """delta = sqrt(u + eps) / sqrt(v + eps) * grad with v, u running means of grad ** 2, delta ** 2; p -= lr * delta.

    ValueError for a setting out of range.
    """

    _buffers = ("square_avg", "acc_delta")
    _options = ("rho", "eps", "weight_decay", "maximize")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = settings(locals(), "eps weight_decay")
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, defaults)

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_adadelta_
