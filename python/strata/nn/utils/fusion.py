"""Folds a batch norm into the layer before it, for inference."""

from __future__ import annotations

from copy import deepcopy

import strata
from strata import Tensor

from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _folded(
    weight: Tensor, bias: Tensor | None, norm: tuple[Tensor | None, ...], eps: float, shape: list[int]
) -> tuple[Parameter, Parameter]:
    mean, var, scale, shift = norm
    bias = strata.zeros_like(mean) if bias is None else bias
    scale = strata.ones_like(mean) if scale is None else scale
    shift = strata.zeros_like(mean) if shift is None else shift
    factor = scale * strata.rsqrt(var + eps)
    fused = (weight * factor.reshape(shape)).to(weight.dtype)
    return (
        Parameter(fused, weight.requires_grad),
        Parameter(((bias - mean) * factor + shift).to(weight.dtype), bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the convolution that does its own work and the batch norm's; transpose: of a transposed one."""
    shape = [1, -1] if transpose else [-1, 1]
    return _folded(conv_w, conv_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps, shape + [1] * (conv_w.dim() - 2))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of the linear layer that does its own work and the batch norm's."""
    return _folded(linear_w, linear_b, (bn_rm, bn_rv, bn_w, bn_b), bn_eps, [-1, 1])


def _checked(layer: Module, norm: Module) -> Module:
    if layer.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    if norm.running_mean is None or norm.running_var is None:
        raise AssertionError("the batch norm must have running statistics: build it with track_running_stats=True")
    return deepcopy(layer)


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A copy of the convolution with the batch norm after it folded in. Both must be in eval mode: AssertionError."""
    fused = _checked(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A copy of the linear layer with the batch norm after it folded in. Both must be in eval mode: AssertionError."""
    fused = _checked(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
