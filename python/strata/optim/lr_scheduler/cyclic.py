"""Triangular cycles of rate and momentum. Source: arXiv:1506.01186."""

from __future__ import annotations

import math

from .base import LRScheduler, check_optimizer, function_state, per_group, set_group_value, set_momentum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..optimizer import Optimizer
    from .base import Rate


def prepare_momentum(
    optimizer: Optimizer, base_momentum: Any, max_momentum: Any, last_epoch: int
) -> tuple[bool, list[float], list[float]]:
    """(is it beta1, base values, largest values); the groups begin at the largest. ValueError where there is none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    is_beta = "betas" in optimizer.defaults
    bases = per_group("base_momentum", optimizer, base_momentum)
    largest = per_group("max_momentum", optimizer, max_momentum)
    if last_epoch == -1:
        for group, base, top in zip(optimizer.param_groups, bases, largest, strict=True):
            set_momentum(group, top, is_beta)
            group["max_momentum"] = top
            group["base_momentum"] = base
    return is_beta, bases, largest


class CyclicLR(LRScheduler):
    """From base_lr to max_lr in step_size_up steps and back in step_size_down, over and over.

    mode: "triangular", "triangular2" (each cycle half as high) or "exp_range" (height times gamma ** step); scale_fn
    of the cycle or the step (scale_mode) stands for it. cycle_momentum: momentum goes the other way. ValueError for
    an unknown mode, or an optimiser without momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_group_value(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1, self.base_momentums, self.max_momentums = prepare_momentum(
                optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Height of the cycle, or of the step, numbered x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in limits:
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of scale_fn, only the attributes where it is an object."""
        state = super().state_dict()
        state["_scale_fn_custom"] = function_state(self._scale_fn_custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave; scale_fn stays, an object gets its attributes."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom") is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])
