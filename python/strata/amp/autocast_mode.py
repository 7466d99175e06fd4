"""The autocast context; which operator runs in which dtype is the core's table."""

import functools
import sys
import warnings
from collections.abc import Mapping

import strata
from strata import _C
from strata._device_words import device_names

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOW = (strata.bfloat16, strata.float16)


def is_autocast_available(device_type):
    """Whether this kind of device has autocast here (with the plugins that are loaded)."""
    return _C._is_autocast_available(device_type)


class autocast:
    """Context, and decorator, in which matrix products run in a low precision and sensitive operators in float32.

    Args:
        device_type: kind of device, as `tensor.device.type`.
        dtype: the low precision, bfloat16 or float16; by default `get_autocast_dtype(device_type)`.
        enabled: False switches autocast off inside.
        cache_enabled: keep the low-precision copies of weights while the outermost context lasts; by default as is.

    A dtype that autocast does not know, or a device that is not present, warns and leaves autocast off.

    Raises:
        ValueError: device_type is not a string.
        RuntimeError: there is no such kind of device.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        _check_kind(device_type, "autocast")
        self.device = device_type
        self._cache_enabled = strata.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._present = is_autocast_available(device_type)
        if not self._present:
            if device_type not in device_names():
                strata.device(device_type)  # raises for a name that no device has
            self._enabled, self.fast_dtype = False, dtype
            if enabled:
                warnings.warn(f"autocast: no {device_type} device is available; autocast stays off", stacklevel=2)
            return
        self.fast_dtype = strata.get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled
        if enabled and self.fast_dtype not in _LOW:
            names = " and ".join(map(str, _LOW))
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports {names}, got {self.fast_dtype}.",
                stacklevel=2,
            )
            self._enabled = False

    def __enter__(self):
        if self._present:
            _C._autocast_enter(self.device, self.fast_dtype, self._enabled, self._cache_enabled)
        return self

    def __exit__(self, *error):
        if self._present:
            _C._autocast_exit()
        return False

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast(...) decorates functions, got a {type(func).__name__}; as a context it reads "
                "`with autocast(device_type): ...`"
            )
        return autocast_decorator(self, func)


def autocast_decorator(instance, func):
    """`func`, run inside the context `instance`."""

    @functools.wraps(func)
    def inside(*args, **kwargs):
        with instance:
            return func(*args, **kwargs)

    return inside


def _cast(value, device_type, dtype):
    """`value` with its floating point tensors of that kind of device (float64 excepted) in `dtype`, in any nest."""
    if isinstance(value, strata.Tensor):
        narrow = value.is_floating_point() and value.dtype != strata.float64 and value.device.type == device_type
        return value.to(dtype) if narrow else value
    numpy = sys.modules.get("numpy")
    if isinstance(value, (str, bytes)) or (numpy is not None and isinstance(value, numpy.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_cast(v, device_type, dtype) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def _check_kind(device_type, where):
    fits = isinstance(device_type, str)
    if not fits:
        raise ValueError(f"{where}: device_type must be a string, got {type(device_type).__name__}")


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorator for `forward` of an autograd Function.

    Args:
        cast_inputs: under autocast, cast the floating point tensors to this dtype and run with autocast off.
            None runs under whatever autocast is on; `custom_bwd` then restores the same.
    """
    _check_kind(device_type, "custom_fwd")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        active = strata.is_autocast_enabled(device_type)
        ctx._dtype = strata.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Decorator for `backward` of an autograd Function: autocast is as it was in the decorated `forward`."""
    _check_kind(device_type, "custom_bwd")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return backward
