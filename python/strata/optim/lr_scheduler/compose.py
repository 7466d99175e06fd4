"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right

from .base import LRScheduler, group_values, set_group_value
from .plateau import ReduceLROnPlateau

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..optimizer import Optimizer


class _Composed(LRScheduler):
    """Holds `_schedulers` of one optimiser; their states are part of its own."""

    def _take(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        """TypeError and ValueError name the member that cannot be one."""
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser, with the members' own."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave, the members too."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """schedulers[i] from epoch milestones[i - 1] on, each counting from 0.

    ValueError for no schedulers, another number of milestones than one fewer, or another optimiser.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._take(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Every member has stepped once when it was made: undo that, then let the first one begin.
        for group in optimizer.param_groups:
            set_group_value(group, "lr", group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler: Any) -> None:
        for member in getattr(scheduler, "_schedulers", ()):
            self._undo(member)
        if not hasattr(scheduler, "_schedulers"):
            scheduler.last_epoch -= 1

    def step(self) -> None:
        """Steps the schedule whose turn it is; at its milestone it begins at 0."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedules at each step, one on the other's rate. ValueError for no schedulers, or another optimiser."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        self._take(optimizer or schedulers[0].optimizer, schedulers)
        self._last_lr = group_values(self.optimizer, "lr")

    def step(self) -> None:
        """Steps every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = group_values(self.optimizer, "lr")
