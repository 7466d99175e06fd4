"""Gradients of convolutions for their inputs and their weights, by autograd."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _make(rank: int, wanted: str) -> Callable:
    name = f"conv{rank}d_{wanted}"

    def function(
        given: Any, other: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        conv = getattr(strata.nn.functional, f"conv{rank}d")
        with strata.enable_grad():
            if wanted == "input":
                x, weight = strata.zeros(tuple(given), dtype=other.dtype, device=other.device, requires_grad=True), other.detach()
            else:
                x, weight = given.detach(), strata.zeros(tuple(other), dtype=given.dtype, device=given.device, requires_grad=True)
            result = conv(x, weight, None, stride, padding, dilation, groups)
        return strata.autograd.grad(result, x if wanted == "input" else weight, grad_output)[0]

    first, second = ("input_size", "weight") if wanted == "input" else ("input", "weight_size")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The gradient of conv{rank}d for its {wanted}, by ({first}, {second}, grad_output, stride, ...)."
    return function


conv1d_input, conv1d_weight = _make(1, "input"), _make(1, "weight")
conv2d_input, conv2d_weight = _make(2, "input"), _make(2, "weight")
conv3d_input, conv3d_weight = _make(3, "input"), _make(3, "weight")
