"""Types of annotations, as PyTorch's layers have them, and a helper of their constructors."""

from __future__ import annotations

from typing import Any, Optional, Union

from strata import Tensor

_scalar_or_tuple_any_t = Union[int, tuple[int, ...]]
_scalar_or_tuple_1_t = Union[int, tuple[int]]
_scalar_or_tuple_2_t = Union[int, tuple[int, int]]
_scalar_or_tuple_3_t = Union[int, tuple[int, int, int]]
_size_any_t = _scalar_or_tuple_any_t
_size_1_t, _size_2_t, _size_3_t = _scalar_or_tuple_1_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t
_size_any_opt_t = tuple[Optional[int], ...]
_ratio_2_t, _ratio_3_t = Union[float, tuple[float, float]], Union[float, tuple[float, float, float]]
_ratio_any_t = Union[float, tuple[float, ...]]
_tensor_list_t = Union[Tensor, list[Tensor]]
_maybe_indices_t = Union[Tensor, tuple[Tensor, Tensor]]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a factory (device, dtype, memory_format) among others. TypeError where one is given twice."""
    if kwargs is None:
        return {}
    if not isinstance(kwargs, dict):
        raise TypeError(f"factory_kwargs: kwargs: expected a dict or None, got {type(kwargs).__name__}")
    simple = {name: kwargs[name] for name in ("device", "dtype", "memory_format") if name in kwargs}
    for name, value in kwargs.get("factory_kwargs", {}).items():
        if name in simple:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        simple[name] = value
    return simple
