"""What steps by a fused operator of the table: lists of tensors as it takes them, of one real dtype and one device a call.

Step counts are tensors, and so is the learning rate where the caller gives one: a recording of a step reads them anew.
"""

from __future__ import annotations

import strata
from strata import Tensor, _capture

from .optimizer import Optimizer, new_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _as_real(lists: tuple[list[Tensor], ...]) -> tuple[list[Tensor], ...]:
    """Complex tensors as real ones with a last dimension of 2, others as they are."""
    return tuple([strata.view_as_real(t) if t.is_complex() else t for t in tensors] for tensors in lists)


def by_kind(lists: tuple[list[Tensor], ...]) -> list[tuple[list[Tensor], ...]]:
    """The lists, split alike so that the first one's tensors share dtype and device; an empty list stays empty."""
    params = lists[0]
    dtype, device = params[0].dtype, params[0].device
    for p in params:
        if p.dtype != dtype or p.device != device:
            break
    else:
        return [_as_real(lists) if dtype.is_complex else lists]
    kinds: dict[Any, list[int]] = {}
    for i, p in enumerate(params):
        kinds.setdefault((p.dtype, p.device), []).append(i)
    parts = []
    for (dtype, _), indices in kinds.items():
        split = tuple([values[i] for i in indices] if values else [] for values in lists)
        parts.append(_as_real(split) if dtype.is_complex else split)
    return parts


def as_scalar(value: float | Tensor) -> float | Tensor:
    """A one-element tensor as 0-dim, so that a graph reads it anew at each step; a number as float."""
    return value.reshape(()) if isinstance(value, Tensor) else float(value)


def rate(group: dict[str, Any]) -> float | Tensor:
    """The learning rate as operators take it."""
    capture = _capture.current()
    value = group["lr"]
    return as_scalar(value) if capture is None or isinstance(value, Tensor) else capture.rate(group)


def call(operator: Callable[..., None], group: dict[str, Any], lists: tuple[list[Tensor], ...], options: dict[str, Any]) -> None:
    """Calls an optimiser's operator. A capture reads the group's numbers anew each time."""
    capture = _capture.current()
    if capture is None:
        operator(*lists, **options)
    else:
        capture.call(operator, group, lists, options)


def check_fused(group: dict[str, Any]) -> None:
    """RuntimeError for parameters that are not real floats where the group says fused=True: complex ones are stepped as their two
    parts where nobody asked for that kernel, as in PyTorch."""
    if group.get("fused"):
        from ._own_helpers import _device_dtype_check_for_fused

        for parameter in group["params"]:
            _device_dtype_check_for_fused(parameter)


def scaling(optimizer: Optimizer) -> dict[str, Tensor]:
    """What a gradient scaler left on an optimiser whose kernel unscales by itself."""
    own = optimizer.__dict__
    return {name: own[name] for name in ("grad_scale", "found_inf") if own.get(name) is not None}


class FusedOptimizer(Optimizer):
    """A subclass names its operator, the tensors of its state and the options that the operator takes."""

    _buffers: tuple[str, ...] = ()  # in the order of the operator's lists
    _options: tuple[str, ...] = ()  # beside lr and betas

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group. RuntimeError for parameters that its fused=True does not take."""
        super().add_param_group(param_group)
        check_fused(param_group)

    def _operator(self, group: dict[str, Any]) -> Callable[..., None]:
        """Takes parameters, gradients, buffers and step counts, which count this step, and the options."""
        raise NotImplementedError

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The buffers of a group; "" is one that its options do without, whose list is empty."""
        return self._buffers

    def _new_state(self, group: dict[str, Any], parameter: Tensor) -> dict[str, Any]:
        buffers = {name: strata.zeros_like(parameter) for name in self._names(group) if name}
        return {"step": new_step(parameter), **buffers}

    def _arguments(self, group: dict[str, Any], dtype: strata.dtype) -> dict[str, Any]:
        """The operator's arguments beside the lists, which have that dtype."""
        found = {name: group[name] for name in self._options}
        found["lr"] = rate(group)
        if "betas" in group:
            first, second = group["betas"]
            found["beta1"], found["beta2"] = float(first), float(second)
        return found

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        states = [self.state[parameter] for parameter in params]
        steps = [state["step"] for state in states]
        lists = [[state[name] for state in states] if name else [] for name in self._names(group)]
        scaled = scaling(self)
        strata._foreach_add_(steps, 1)
        self._call(group, (params, grads, *lists, steps), scaled)
        if "found_inf" in scaled:  # a skipped step does not count
            strata._foreach_sub_(steps, [scaled["found_inf"].reshape(()).to(steps[0].device)] * len(steps))

    def _call(self, group: dict[str, Any], lists: tuple[list[Tensor], ...], more: dict[str, Any]) -> None:
        """The operator over each part of the lists that is of one kind."""
        operator = self._operator(group)
        for split in by_kind(lists):
            call(operator, group, split, {**self._arguments(group, split[0][0].dtype), **more})
