"""Weights of convolutions in another memory format."""

from __future__ import annotations

import strata

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, memory_format: strata.memory_format, classes: tuple[type, ...]) -> Module:
    for member in module.modules():
        if isinstance(member, classes):
            member.weight.data = member.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: strata.memory_format) -> Module:
    """The module with the weights of its Conv2d and ConvTranspose2d in memory_format."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: strata.memory_format) -> Module:
    """The module with the weights of its Conv3d and ConvTranspose3d in memory_format."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
