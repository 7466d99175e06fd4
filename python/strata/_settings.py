"""Switches that PyTorch's users set. Where Strata behaves one way only, the switch says so."""

from __future__ import annotations

import warnings

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_precision = "highest"
_deterministic = False
_warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: every operator of Strata gives the same bits each time, whether this is asked for or not."""
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last given; results are deterministic either way."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` was last given as warn_only."""
    return _warn_only


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last given."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """A permission to compute float32 products less exactly. Strata makes no use of it. ValueError for unknown words."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: expected 'highest', 'high' or 'medium', got {precision!r}"
        )
    _precision = precision


def get_default_device() -> Any:
    """Where this thread's factories make tensors unless they are told; of a plugin's devices the one that is current."""
    chosen = strata._C._default_device()
    if chosen.index is None and chosen.type not in ("cpu", "meta"):
        return strata.device(chosen.type, strata._C._device_current(chosen))
    return chosen


def set_default_device(device: Any) -> None:
    """Makes this thread's factories, `strata.tensor` and its kin make tensors there unless they are told; None: on the CPU.
    `with strata.device("name"):` does it for a block."""
    strata._C._set_default_device(strata.device("cpu" if device is None else device))


def set_default_tensor_type(t: Any) -> None:
    """The legacy way to choose the default dtype: takes names such as 'strata.DoubleTensor'."""
    warnings.warn("set_default_tensor_type is deprecated: use set_default_dtype", stacklevel=2)
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    strata.set_default_dtype(strata.empty(0).type(name).dtype)


def get_num_interop_threads() -> int:
    """1: operators run one after the other."""
    return 1


def set_num_interop_threads(num_threads: int) -> None:
    """Accepts 1. ValueError for others: operators run one after the other."""
    if num_threads != 1:
        raise ValueError(f"set_num_interop_threads: operators run one after the other, got {num_threads}")


def set_flush_denormal(mode: bool) -> bool:
    """False, which says that it cannot be set: the smallest numbers are computed with, as everywhere."""
    return False


def set_warn_always(b: bool, /) -> None:
    """Accepted: Python's warning filters decide how often a warning shows."""


def is_warn_always_enabled() -> bool:
    """False: Python's warning filters decide."""
    return False
