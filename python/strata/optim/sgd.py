"""Stochastic gradient descent. Nesterov's form: Sutskever et al., ICML 2013."""

from __future__ import annotations

import strata
from strata import Tensor

from ._fused import by_kind, call, check_fused, rate, scaling
from .optimizer import Optimizer, add_at, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .optimizer import Params

__all__ = ["SGD"]


class SGD(Optimizer):
    """d = grad + weight_decay * p; buf = momentum * buf + (1 - dampening) * d, at first d; p -= lr * buf.

    nesterov: p -= lr * (d + momentum * buf). maximize: the gradient's sign is turned. foreach, fused: accepted; one
    fused kernel serves all. ValueError for a negative setting, or nesterov without momentum or with dampening.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = settings(locals(), "momentum weight_decay")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        if fused:
            self._step_supports_amp_scaling = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group. RuntimeError for parameters that its fused=True does not take."""
        super().add_param_group(param_group)
        check_fused(param_group)

    def init_state(self) -> None:
        """Makes momentum buffers of zeros, which give the first step's result where dampening is 0.

        Groups with dampening get theirs at their first step: run one before capturing a graph.
        """
        for group in self.param_groups:
            if group["momentum"] == 0 or group["dampening"] != 0:
                continue
            for parameter in group["params"]:
                if parameter.requires_grad and self.state[parameter].get("momentum_buffer") is None:
                    self.state[parameter]["momentum_buffer"] = strata.zeros_like(parameter)

    def _step_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> tuple[list, list]:
        if group["momentum"] and not group["weight_decay"]:  # every element moves on by its momentum
            return params, [g.to_dense() if g.is_sparse else g for g in grads]
        return super()._step_sparse(group, params, grads)

    def _update_places(self, group: dict[str, Any], parameter: Tensor, places: Tensor, values: Tensor) -> None:
        if group["weight_decay"]:
            raise RuntimeError("SGD: weight_decay is not provided for sparse gradients; set it to 0")
        add_at(parameter, places, values, -rate(group))

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if group["momentum"] == 0:
            self._call(group, params, grads, [], False)
            return
        fresh: tuple[list, list, list] = ([], [], [])
        known: tuple[list, list, list] = ([], [], [])
        for parameter, gradient in zip(params, grads, strict=True):
            state = self.state[parameter]
            buffer = state.get("momentum_buffer")
            kept = known if buffer is not None else fresh
            if buffer is None:
                buffer = state["momentum_buffer"] = strata.empty_like(gradient)
            for values, value in zip(kept, (parameter, gradient, buffer), strict=True):
                values.append(value)
        for lists, first in ((known, False), (fresh, True)):
            if lists[0]:
                self._call(group, *lists, first)

    def _call(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], buffers: list[Tensor], first: bool
    ) -> None:
        for p, g, b in by_kind((params, grads, buffers)):
            options = {
                "weight_decay": float(group["weight_decay"]),
                "momentum": float(group["momentum"]),
                "lr": rate(group),
                "dampening": float(group["dampening"]),
                "nesterov": group["nesterov"],
                "maximize": group["maximize"],
                "is_first_step": first,
                **scaling(self),
            }
            call(strata._fused_sgd_, group, (p, g, b), options)
