"""Adamax. Source: arXiv:1412.6980, section 7."""

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

__all__ = ["Adamax"]


class Adamax(FusedOptimizer):
    """m is a running mean of grad, u = max(b2 * u, |grad| + eps); p -= lr / (1 - b1 ** t) * m / u.

    ValueError for a setting out of range.
    """

    _buffers = ("exp_avg", "exp_inf")
    _options = ("weight_decay", "eps", "maximize")

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

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_adamax_
