"""GradScaler: the loss is multiplied by a scale so that float16 gradients do not vanish, and the gradients divided by
it before the step; the scale falls when they overflow and rises after a while without."""

import warnings
from collections import defaultdict
from enum import Enum

import strata

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Where an optimizer stands between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _Copies:
    """One tensor, copied to each device that asks."""

    def __init__(self, master):
        self.master = master
        self.by_device = {}

    def get(self, device):
        if device not in self.by_device:
            self.by_device[device] = self.master.to(device=device, non_blocking=True, copy=True)
        return self.by_device[device]


def _default_device():
    accelerator = strata.accelerator.current_accelerator() if strata.accelerator.is_available() else None
    return "cpu" if accelerator is None else accelerator.type


class GradScaler:
    """Scales losses, unscales gradients, skips steps whose gradients are not finite.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    Args:
        device: kind of device; by default the accelerator, or the CPU where there is none.
        init_scale: scale at the start.
        growth_factor, growth_interval: the scale grows by this factor after so many steps without overflow.
        backoff_factor: the scale shrinks by this factor with each overflow.
        enabled: False makes every method pass its arguments on unchanged.

    Raises:
        AssertionError: growth_factor <= 1 or backoff_factor >= 1.
    """

    def __init__(
        self,
        device=None,
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = _default_device() if device is None else device
        if enabled and self._device not in ("cpu", _default_device()):
            warnings.warn(f"GradScaler: no {self._device} device is available; the scaler is disabled", stacklevel=2)
            enabled = False
        self._enabled = enabled
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Both tensors live where the first scaled loss lives.
        self._scale = None
        self._growth_tracker = None
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _require_scale(self, name):
        if self._scale is None:
            raise AssertionError(f"GradScaler: {name} needs a scale; call scaler.scale(loss) earlier in the iteration")
        return self._scale

    def _start_on(self, device):
        self._scale = strata.full((), self._init_scale, dtype=strata.float32, device=device)
        self._growth_tracker = strata.full((), self._init_growth_tracker, dtype=strata.int32, device=device)

    def scale(self, outputs):
        """`outputs` (a tensor, or an iterable of tensors) times the scale."""
        if not self._enabled:
            return outputs
        copies = None

        def scaled(value):
            nonlocal copies
            if isinstance(value, strata.Tensor):
                if self._scale is None:
                    self._start_on(value.device)
                copies = copies or _Copies(self._scale)
                return value * copies.get(value.device)
            if isinstance(value, (list, tuple)):
                return type(value)(map(scaled, value))
            if hasattr(value, "__iter__"):
                return map(scaled, value)
            raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, got {type(value).__name__}")

        return scaled(outputs)

    def _unscale_grads_(self, optimizer, inverse, allow_half):
        """Multiplies the gradients by `inverse`; per device a tensor that is 1 where one was not finite."""
        inverses = _Copies(inverse)
        found = _Copies(strata.zeros((), dtype=strata.float32, device=inverse.device))
        groups = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype == strata.float16 and not allow_half:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = p.grad
                if grad.is_sparse:
                    p.grad = grad.coalesce()  # values of its own, and sums, which may be infinite
                    grad = p.grad._values()
                groups[grad.device, grad.dtype].append(grad)
        with strata.no_grad():
            for (device, _), grads in groups.items():
                strata._amp_foreach_non_finite_check_and_unscale_(grads, found.get(device), inverses.get(device))
        return found.by_device

    def unscale_(self, optimizer):
        """Divides the optimizer's gradients by the scale, for instance to clip them; `step` does it otherwise.

        Raises:
            RuntimeError: called twice before `update`, or after `step`.
            ValueError: a gradient is float16 (the parameters must be float32).
        """
        if not self._enabled:
            return
        scale = self._require_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # Float32 would round the reciprocal of a scale that is not a power of two once more.
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(*args, **kwargs)` if all gradients are finite; its result, or None where it was skipped.

        Raises:
            RuntimeError: called twice before `update`; a closure is given.
            AssertionError: no gradient has been checked.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._require_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._fused_step(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            overflow = sum(found.item() for found in state["found_inf_per_device"].values())
            result = None if overflow else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _fused_step(self, optimizer, state, args, kwargs):
        """A step that unscales and skips by itself, told by two tensors on the optimizer (no synchronisation)."""
        scale = self._scale
        own = getattr(optimizer, "grad_scale", None)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            own = scale if own is None else scale * own
        optimizer.grad_scale = own
        optimizer.found_inf = self._sum_found([state])
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer):
        one = strata.ones((), dtype=strata.float32, device=self._require_scale("step").device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, True)
        return state["found_inf_per_device"]

    def _sum_found(self, states):
        device = self._scale.device
        found = [t.to(device, non_blocking=True) for state in states for t in state["found_inf_per_device"].values()]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        return sum(found[1:], start=found[0])

    def update(self, new_scale=None):
        """Moves the scale after the step of every optimizer, or sets it to `new_scale` (a float or 1-element tensor).

        Raises:
            AssertionError: no step was taken; `new_scale` does not fit.
        """
        if not self._enabled:
            return
        scale = self._require_scale("update")
        if new_scale is None:
            strata._amp_update_scale_(
                scale,
                self._growth_tracker,
                self._sum_found(self._per_optimizer_states.values()),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        elif not isinstance(new_scale, strata.Tensor):
            scale.fill_(float(new_scale))
        else:
            if new_scale.numel() != 1 or new_scale.requires_grad or new_scale.device.type != self._device:
                raise AssertionError(
                    f"GradScaler.update: new_scale must be a float or a 1-element tensor on {self._device} with "
                    "requires_grad=False"
                )
            scale.copy_(new_scale.reshape(()))
        self._per_optimizer_states = defaultdict(_fresh_state)

    def get_scale(self):
        """The scale as a float, 1.0 where disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_scale_async(self):
        return self._scale

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        """Scale, factors, interval and the steps since the last change; empty where disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict`. RuntimeError where it is empty, that is, of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        if self._per_optimizer_states:
            raise AssertionError("GradScaler: pickle it at the beginning of an iteration or after update()")
        state = dict(self.__dict__)
        state.update(
            _init_scale=self.get_scale(),
            _init_growth_tracker=self._get_growth_tracker(),
            _scale=None,
            _growth_tracker=None,
        )
        return state
