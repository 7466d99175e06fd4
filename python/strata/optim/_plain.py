"""What the optimisers written as tensor code share: one parameter at a time, complex ones as pairs of reals.

They read their step count as a number, so they are not for graph capture; Adam, AdamW, SGD and RMSprop are.
"""

from __future__ import annotations

import strata
from strata import Tensor

from .optimizer import Optimizer, new_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _real(value: Any) -> Any:
    return strata.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


class PlainOptimizer(Optimizer):
    """A subclass names the tensors of its state in `_buffers` and defines `_update_one`."""

    _buffers: tuple[str, ...] = ()

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        return {"step": new_step(parameter), **{name: strata.zeros_like(parameter) for name in self._buffers}}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        lr = float(group["lr"])
        decay = group.get("weight_decay", 0)
        for parameter, grad in zip(params, grads, strict=True):
            state = self.state[parameter]
            state["step"] += 1
            if group["maximize"]:
                grad = -grad
            if decay != 0 and group.get("decoupled_weight_decay"):
                parameter.mul_(1 - lr * decay)
            elif decay != 0:
                grad = grad.add(parameter, alpha=decay)
            buffers = {name: _real(value) for name, value in state.items() if name != "step"}
            self._update_one(group, _real(parameter), _real(grad), buffers, lr, float(state["step"]))

    def _update_one(
        self, group: dict[str, Any], p: Tensor, grad: Tensor, state: dict[str, Tensor], lr: float, step: float
    ) -> None:
        """Updates `p` and the buffers in `state` in place; `step` counts from 1."""
        raise NotImplementedError
