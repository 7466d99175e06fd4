"""Conversions of a whole module: dtype, device, memory format. Parameters keep their identity; their data is replaced,
so an optimiser built before the conversion still holds the module's parameters."""

from __future__ import annotations

import warnings

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    tensor: Tensor | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> tuple[Any, Any, bool, Any]:
    """(device, dtype, non_blocking, memory_format) of the forms to(device, dtype), to(dtype), to(tensor)."""
    given = [tensor, *args] if tensor is not None else list(args)
    if given and isinstance(given[-1], bool):
        non_blocking = given.pop()
    for value in given:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, strata.dtype):
            dtype = value
        elif value is not None:
            device = value
    if device is not None and not isinstance(device, strata.device):
        if not isinstance(device, (str, int)):
            raise TypeError(
                f"to() received an invalid argument of type {type(device).__name__}: expected a device, "
                "a dtype or a Tensor, then optionally non_blocking (bool)"
            )
        device = strata.device(device)
    return device, dtype, non_blocking, memory_format


class ConversionMixin:
    """`to` and its short forms, for Module."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with strata.no_grad():
                converted = fn(parameter)
            gradient = parameter.grad
            if gradient is not None:
                with strata.no_grad():
                    converted_gradient = fn(gradient)
                parameter.grad = None  # while dtype or device of the two differ
            parameter.data = converted
            if gradient is not None:
                gradient.data = converted_gradient
                parameter.grad = gradient
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _cast_floats(self, dtype: strata.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts every parameter and buffer: to(device, dtype), to(dtype), to(tensor), non_blocking=,
        memory_format= (for 4-d and 5-d ones).

        Only floating-point and complex tensors are cast; TypeError for another dtype.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are new: some modules might not work as expected with complex parameters.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
            return t.to(device, new_dtype, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Gives every parameter and buffer uninitialised memory on `device`."""
        return self._apply(lambda t: strata.empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Self:
        """Moves every parameter and buffer to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Self:
        """Casts every parameter and buffer to `dst_type`, integers too."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Casts floating-point parameters and buffers to float32."""
        return self._cast_floats(strata.float32)

    def double(self) -> Self:
        """Casts floating-point parameters and buffers to float64."""
        return self._cast_floats(strata.float64)

    def half(self) -> Self:
        """Casts floating-point parameters and buffers to float16."""
        return self._cast_floats(strata.float16)

    def bfloat16(self) -> Self:
        """Casts floating-point parameters and buffers to bfloat16."""
        return self._cast_floats(strata.bfloat16)

    def share_memory(self) -> Self:
        """Moves every parameter and buffer to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())
