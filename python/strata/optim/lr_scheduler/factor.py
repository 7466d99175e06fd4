"""Schedules that multiply the rate by a factor of the epoch.

Each computes the next rate from the present one, so that schedules chain; `_get_closed_form_lr` computes it from the
initial one, for a jump to an epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..optimizer import Optimizer
    from .base import Rate


class _ByFactor(LRScheduler):
    """A subclass gives the factor from the last epoch's rate (None: no change) and from the initial rate."""

    def _factor(self) -> float | None:
        raise NotImplementedError

    def _closed_factor(self) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        factor = self._factor()
        return self._present() if factor is None else self._scaled(factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self._closed_factor()
        return [base * factor for base in self.base_lrs]


class StepLR(_ByFactor):
    """Times gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        return None if self.last_epoch == 0 or self.last_epoch % self.step_size != 0 else self.gamma

    def _closed_factor(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_ByFactor):
    """Times gamma at each of the epochs in milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        count = self.milestones.get(self.last_epoch)
        return None if count is None else self.gamma**count

    def _closed_factor(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_ByFactor):
    """Times factor until epoch total_iters. ValueError for a factor outside [0, 1]."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _closed_factor(self) -> float:
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_ByFactor):
    """Factor from start_factor to end_factor in total_iters even steps. ValueError for a factor outside (0, 1]."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _closed_factor(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_ByFactor):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        return None if self._is_initial else self.gamma

    def _closed_factor(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(_ByFactor):
    """(1 - epoch / total_iters) ** power of the initial rate, 0 from total_iters on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float | None:
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return (now / before) ** self.power

    def _closed_factor(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
