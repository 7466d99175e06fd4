"""RMSprop. Sources: Hinton's lecture 6e; the centred form, arXiv:1308.0850."""

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

__all__ = ["RMSprop"]


class RMSprop(FusedOptimizer):
    """v is a running mean of grad ** 2 with factor alpha; p -= lr * grad / (sqrt(v) + eps).

    centered: v less the square of a running mean of grad. momentum: buf = momentum * buf + grad / (sqrt(v) + eps),
    p -= lr * buf. foreach, capturable: accepted. ValueError for a negative setting.
    """

    _options = ("alpha", "eps", "weight_decay", "momentum", "centered", "maximize")

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

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_rmsprop_

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return "square_avg", "grad_avg" if group["centered"] else "", "momentum_buffer" if group["momentum"] > 0 else ""
