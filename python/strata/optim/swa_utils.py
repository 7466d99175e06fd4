"""Averages of a model's parameters over training. Sources: SWA, arXiv:1803.05407; moving averages, Polyak 1990."""

from __future__ import annotations

import math
from copy import deepcopy

import strata
from strata import Tensor

from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler.base import LRScheduler, per_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .lr_scheduler.base import Rate
    from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """`f(average, current, count)`: decay * average + (1 - decay) * current."""
    _check_decay(decay)

    def update(average: Tensor, current: Tensor, count: Tensor) -> Tensor:
        with strata.no_grad():
            return decay * average + (1 - decay) * current

    return update


def get_swa_avg_fn() -> Callable:
    """`f(average, current, count)`: the mean of all so far, `count` of them in `average`."""

    def update(average: Tensor, current: Tensor, count: Tensor | int) -> Tensor:
        with strata.no_grad():
            return average + (current - average) / (count + 1)

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """`f(averages, currents, count)`: get_ema_avg_fn over lists, in place."""
    _check_decay(decay)

    def update(averages: list[Tensor], currents: list[Tensor], count: Tensor | int) -> None:
        with strata.no_grad():
            for average, current in zip(averages, currents, strict=True):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(current, 1 - decay)
                else:
                    average.copy_(average * decay + current * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable:
    """`f(averages, currents, count)`: get_swa_avg_fn over lists, in place."""

    def update(averages: list[Tensor], currents: list[Tensor], count: Tensor | int) -> None:
        with strata.no_grad():
            for average, current in zip(averages, currents, strict=True):
                average.copy_(average + (current - average) / (float(count) + 1))  # integers are cut off

    return update


class AveragedModel(Module):
    """A copy of `model` whose parameters are an average of those seen by update_parameters.

    avg_fn, multi_avg_fn: how to average, one tensor or all at a time (the mean unless given; not both:
    AssertionError). use_buffers: buffers are averaged too, else copied.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", strata.tensor(0, dtype=strata.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model: Module) -> None:
        """Takes `model`'s present parameters into the average; the first ones become it."""
        own = [tensor.detach() for tensor in self._averaged(self.module)]
        new = [tensor.detach().to(mine.device) for mine, tensor in zip(own, self._averaged(model), strict=True)]
        if self.n_averaged == 0:
            for mine, tensor in zip(own, new, strict=True):
                mine.copy_(tensor)
        elif self.avg_fn is not None:
            for mine, tensor in zip(own, new, strict=True):
                mine.copy_(self.avg_fn(mine, tensor, self.n_averaged.to(mine.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(own, new, self.n_averaged)
        if not self.use_buffers:
            for mine, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(buffer.detach().to(mine.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recomputes the running statistics of `model`'s batch norms over the batches of `loader`.

    A batch is a tensor, or a list or tuple that begins with one.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    was_training = model.training
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    model.train()
    try:
        with strata.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to swa_lr in anneal_epochs, then constant. anneal_strategy: "cos" or "linear".

    ValueError for another word, or anneal_epochs that is no integer of 0 or more.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way to swa_lr is done."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Rate]:
        self._check_within_step()
        # The rate this would have begun at, from the present one; then on to the next step.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(step - 1)
        now = self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, present = group["swa_lr"], group["lr"]
            start = target if before == 1 else (present - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
