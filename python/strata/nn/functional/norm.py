"""Normalisation functions."""

from __future__ import annotations

import math

from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, has_torch_function_variadic, overridden


def _check_values_per_channel(size: list[int]) -> None:
    """ValueError where a channel of (N, C, ...) holds one value, whose variance says nothing."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias per channel of (N, C, ...). Source: arXiv:1502.03167.

    training: mean and variance of the batch, and the running ones are updated in place; else the running ones.
    ValueError for one value per channel in training, or an eps that is negative (in training: not positive).
    """
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return overridden(batch_norm, (input, running_mean, running_var, weight, bias), locals())
    if training:
        _check_values_per_channel(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    # The last argument allows a library's kernel.
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample of (N, C, ...). Source: arXiv:1607.08022.

    ValueError where use_input_stats and a channel holds one element.
    """
    if has_torch_function_variadic(input, running_mean, running_var, weight, bias):
        return overridden(instance_norm, (input, running_mean, running_var, weight, bias), locals())
    size = input.size()
    if use_input_stats and math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")
    return _ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions, whose sizes are normalized_shape. Source: arXiv:1607.06450."""
    if has_torch_function_variadic(input, weight, bias):
        return overridden(layer_norm, (input, weight, bias), locals())
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x * x) + eps) * weight over the last dimensions. Source: arXiv:1910.07467.

    eps: None stands for the machine epsilon of the input's dtype.
    """
    if has_torch_function_variadic(input, weight):
        return overridden(rms_norm, (input, weight), locals())
    return _ops.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises each group of channels of each sample of (N, C, ...). Source: arXiv:1803.08494."""
    if has_torch_function_variadic(input, weight, bias):
        return overridden(group_norm, (input, weight, bias), locals())
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _check_values_per_channel([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return _ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x * x over `size` neighbouring channels) ** beta, for (N, C, ...) of 3 or more dims."""
    if has_torch_function_unary(input):
        return overridden(local_response_norm, (input,), locals())
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    # The mean over channels is a pooling over one image of height C and width of all positions.
    squares = input.mul(input).reshape(input.size(0), 1, input.size(1), -1)
    squares = _ops.pad(squares, [0, 0, size // 2, (size - 1) // 2])
    means = _ops.avg_pool2d(squares, [size, 1], 1).reshape(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)
