"""Schedules given by functions of the epoch."""

from __future__ import annotations

from .base import LRScheduler, function_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..optimizer import Optimizer
    from .base import Rate


class _ByFunction(LRScheduler):
    """lr_lambda: one function of the epoch, or a list of one a group. ValueError for a list of another length."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser; of the functions, only the attributes of those that are objects."""
        state = super().state_dict()
        state["lr_lambdas"] = [function_state(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave; the functions stay, those that are objects get their attributes."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_ByFunction):
    """Initial rate times lr_lambda(epoch)."""

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_ByFunction):
    """Present rate times lr_lambda(epoch). TypeError for what cannot be called."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, groups, strict=True)]
