"""spectral_norm by a hook before forward: parameter `<name>_orig`, buffer `<name>_u`, `<name>_v`.

parametrizations.spectral_norm is newer. Source: arXiv:1802.05957.
"""

from __future__ import annotations

import strata
from strata import Tensor

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter
from .parametrizations import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook: sets `module.<name>` before each forward, after n_power_iterations in training."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Module, iterate: bool) -> Tensor:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if iterate:
            with strata.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(strata.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(strata.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # the next iteration writes them while this graph still needs them
        return weight / strata.dot(u, strata.mv(matrix, v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides the parameter by its largest singular value; returns the module.

    The weight is read as a matrix whose rows are `dim`: 1 for transposed convolutions, else 0. RuntimeError for a
    second one on the same parameter, ValueError for n_power_iterations below 1.
    """
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    with strata.no_grad():
        matrix = as_matrix(weight, dim)
        u = F.normalize(matrix.new_empty(matrix.size(0)).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(matrix.new_empty(matrix.size(1)).normal_(0, 1), dim=0, eps=eps)
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Puts the parameter back with its present value; the module. ValueError where there is no spectral_norm."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            with strata.no_grad():
                weight = hook.compute_weight(module, False)
            delattr(module, name)
            del module._buffers[name + "_u"], module._buffers[name + "_v"], module._parameters[name + "_orig"]
            module.register_parameter(name, Parameter(weight.detach()))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
