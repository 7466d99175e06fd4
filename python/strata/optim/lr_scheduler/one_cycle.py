"""The one-cycle policy. Source: arXiv:1708.07120."""

from __future__ import annotations

import math

from .base import LRScheduler, check_optimizer, per_group, set_momentum
from .cyclic import prepare_momentum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..optimizer import Optimizer
    from .base import Rate


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def _phase(end: float, rate: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
    """A stretch that ends at step `end`, between two named values of rate and of momentum."""
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end, **dict(zip(names, (*rate, *momentum), strict=True))}


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr, then down to the initial rate / final_div_factor, over total_steps.

    pct_start: share of the steps that rise; three_phase: down to the initial rate first, then to the end.
    anneal_strategy: "cos" or "linear". cycle_momentum: momentum goes the other way. ValueError for settings out of
    range, an optimiser without momentum, or more steps than total_steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if total_steps is not None:
            _check_positive("total_steps", total_steps)
        elif epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        else:
            _check_positive("epochs", epochs)
            _check_positive("steps_per_epoch", steps_per_epoch)
            total_steps = epochs * steps_per_epoch
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = total_steps
        self._anneal_func_type = anneal_strategy
        rising = float(pct_start * total_steps) - 1
        up, down = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
        self._schedule_phases = [_phase(rising, ("initial_lr", "max_lr"), up)]
        if three_phase:
            falling = float(2 * pct_start * total_steps) - 2
            still = ("max_momentum", "max_momentum")
            self._schedule_phases.append(_phase(falling, ("max_lr", "initial_lr"), down))
            self._schedule_phases.append(_phase(total_steps - 1, ("initial_lr", "min_lr"), still))
        else:
            self._schedule_phases.append(_phase(total_steps - 1, ("max_lr", "min_lr"), down))
        largest = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, largest, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1, _, _ = prepare_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Rate, end: Rate, share: float) -> Rate:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        share = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                value = self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                set_momentum(group, value, self.use_beta1)
        return rates
