"""Cosine schedules. Source: arXiv:1608.03983."""

from __future__ import annotations

import math

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..optimizer import Optimizer
    from .base import Rate


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to eta_min in T_max epochs, and back in as many."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        low, period, epoch = self.eta_min, self.T_max, self.last_epoch
        if self._is_initial:
            return self._present()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (epoch - 1 - period) % (2 * period) == 0:  # the recursion below would divide by zero after a minimum
            rise = (1 - math.cos(math.pi / period)) / 2
            return [g["lr"] + (base - low) * rise for g, base in zip(groups, self.base_lrs, strict=True)]
        ratio = (1 + math.cos(math.pi * epoch / period)) / (1 + math.cos(math.pi * (epoch - 1) / period))
        return [ratio * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate to eta_min in T_0 epochs, then again, each period T_mult times as long.

    ValueError for a T_0 that is no positive integer, a T_mult that is no integer of 1 or more, an eta_min no number.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on by one, or to `epoch`, which may be a fraction (epoch + batch / batches)."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _jump(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # Periods before this one: their lengths are a geometric series.
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
