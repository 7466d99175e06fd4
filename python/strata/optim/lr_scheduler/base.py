"""LRScheduler: the counter of steps and what a schedule does to an optimiser's groups.

A learning rate that is a tensor is filled, not replaced, so a captured graph that reads it sees the new value.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from types import FunctionType

from strata import Tensor

from ..optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Rate = float | Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


def copied(value: Any) -> Any:
    """A tensor's copy, anything else as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """`key` of every group, tensors copied."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_group_value(group: dict[str, Any], key: str, value: Rate) -> None:
    """Sets `key` of a group; a tensor there keeps its identity."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.reshape(()) if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def set_momentum(group: dict[str, Any], value: float, is_beta: bool) -> None:
    """Sets a group's momentum, which for Adam's family is the first beta."""
    if is_beta:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value a group. ValueError for a list of another length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [copied(entry) for entry in value]


def check_optimizer(optimizer: Any) -> None:
    """TypeError for what is no Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def function_state(function: Callable | None) -> dict[str, Any] | None:
    """What to save of a callable: an object's attributes; nothing of a plain function."""
    return None if function is None or isinstance(function, FunctionType) else function.__dict__.copy()


def _track_steps(optimizer: Optimizer) -> None:
    """Makes the optimiser note that it stepped, for the warning about the wrong order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference = weakref.ref(optimizer)  # the optimiser will hold this function
    function = optimizer.step.__func__

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base of schedules: a subclass defines `get_lr()` from `last_epoch`, `base_lrs` and the groups' present rates.

    last_epoch: -1 to begin, else the epoch after which to go on. TypeError for what is no Optimizer; KeyError where
    last_epoch is set and a group has no "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state first, or leave last_epoch at -1 for a fresh run"
                )
        self.base_lrs: list[Rate] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rates last set, one a group."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rates for `last_epoch`, one a group."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def _check_within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch: int | None = None) -> None:
        """Goes on by one, or (retired) to `epoch`, and sets the groups' rates."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                UserWarning,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in "
                "skipping the first value of the learning rate schedule.",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        compute = self.get_lr if epoch is None else getattr(self, "_get_closed_form_lr", self.get_lr)
        self._set_rates(compute)

    def _set_rates(self, compute: Callable[[], list[Rate]]) -> None:
        self._get_lr_called_within_step = True
        try:
            rates = compute()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_group_value(group, "lr", rate)
        self._last_lr: list[Rate] = group_values(self.optimizer, "lr")

    def _present(self) -> list[Rate]:
        return group_values(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list[Rate]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]
