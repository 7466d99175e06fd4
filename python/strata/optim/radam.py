"""RAdam. Source: arXiv:1908.03265."""

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

__all__ = ["RAdam"]


class RAdam(FusedOptimizer):
    """Adam whose division by sqrt(v) begins, rectified, once v's estimate has a bounded variance.

    ValueError for a setting out of range.
    """

    _buffers = ("exp_avg", "exp_avg_sq")
    _options = ("weight_decay", "eps", "decoupled_weight_decay", "maximize")

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

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_radam_
