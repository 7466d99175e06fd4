"""Adafactor. Source: arXiv:1804.04235, algorithms 4 and 5."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import FusedOptimizer
from .optimizer import new_step, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Params

__all__ = ["Adafactor"]


class Adafactor(FusedOptimizer):
    """Second moments of matrices as a product of row and column means: memory grows with rows + columns.

    lr: the largest relative step; beta2 = 1 - step ** beta2_decay. eps: the least second moment (None: the dtype's
    epsilon) and the least size of a parameter that scales its step. d: where updates are clipped. ValueError for a
    setting out of range.
    """

    _options = ("beta2_decay", "weight_decay", "maximize")

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

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        return strata._fused_adafactor_

    def _arguments(self, group: dict[str, Any], dtype: strata.dtype) -> dict[str, Any]:
        least, size = group["eps"]
        found = super()._arguments(group, dtype)
        least = strata.finfo(dtype).eps if least is None else least
        return {**found, "eps1": least, "eps2": size, "threshold": group["d"]}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        rows = [(p, g, self.state[p]) for p, g in zip(params, grads, strict=True)]
        strata._foreach_add_([state["step"] for _, _, state in rows], 1)
        for first, second in (("variance", ""), ("row_var", "col_var")):
            kind = [row for row in rows if first in row[2]]
            if kind:
                params, grads, states = map(list, zip(*kind, strict=True))
                columns = [state[second] for state in states] if second else []
                moments, steps = [state[first] for state in states], [state["step"] for state in states]
                self._call(group, (params, grads, moments, columns, steps), {})
