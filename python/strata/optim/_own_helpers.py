"""Helpers of PyTorch's optimisers that programs take for optimisers of their own."""

from __future__ import annotations

import functools

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_params_doc = "params: the parameters to optimise, or groups of them as dicts"
_foreach_doc = "foreach: whether lists of tensors are stepped together"
_fused_doc = "fused: whether a step is one kernel"
_maximize_doc = "maximize: goes up the gradient, not down"
_capturable_doc = "capturable: whether a step can be captured in a graph of a device"
_differentiable_doc = "differentiable: whether step records gradients"
_foreach_supported_types = [Tensor, strata.nn.Parameter]


def _use_grad_for_differentiable(step: Callable) -> Callable:
    """A step that records gradients where the optimiser's default `differentiable` says so, and else does not."""

    @functools.wraps(step)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with strata.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return wrapped


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """The function as it is: compile decides by itself what it captures."""
    return lambda function: function


def _get_value(x: Any) -> Any:
    """A tensor's number; the tensor itself where it is captured."""
    return x.item() if isinstance(x, Tensor) and not strata.compiler.is_compiling() else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dims."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """A list of tensors as one, where it is captured."""
    return strata.stack(x) if strata.compiler.is_compiling() else x


def _default_to_fused_or_foreach(params: list, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(fused, foreach) where the user said neither: fused where asked for and all parameters are of real floats."""
    return bool(use_fused and not differentiable and all(p is None or p.is_floating_point() for p in params)), False


def _view_as_real(params: list, *state_and_grads: list) -> None:
    """Complex parameters in the list, and what belongs to them in the others, become views of their parts."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = strata.view_as_real(p)
            for values in state_and_grads:
                values[i] = strata.view_as_real(values[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> strata.dtype:
    """The dtype of step counts."""
    return strata.float64 if not is_fused and strata.get_default_dtype() == strata.float64 else strata.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices whose steps may be captured with state that lies there: none."""
    return []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices where lists of tensors are stepped together unless told otherwise: none."""
    return []


def _device_dtype_check_for_fused(p: Tensor, **unsupported: bool) -> None:
    """RuntimeError for a parameter that a fused step does not take."""
    if not p.is_floating_point():
        raise RuntimeError(
            f"`fused=True` requires all the params to be floating point Tensors of supported devices, got {p.dtype}; leave fused out"
        )
