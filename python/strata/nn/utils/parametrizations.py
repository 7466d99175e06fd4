"""Ready parametrizations of weights: orthogonal, weight_norm and spectral_norm."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ._orthogonal import orthogonal
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except(value: Tensor, dim: int) -> Tensor:
    """The 2-norm over all dims but `dim`, which keeps its place (the other sizes are 1); over all where dim is -1."""
    if dim == -1:
        return strata.linalg.vector_norm(value)
    return strata.linalg.vector_norm(value, 2, [d for d in range(value.dim()) if d != dim % value.dim()], keepdim=True)


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """v scaled to norm g. Source: arXiv:1602.07868, equation 2."""
    return v * (g / norm_except(v, dim))


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits the parameter into length and direction: w = g v / |v|, norms over all dims but `dim`; returns the module.

    The two are `parametrizations.<name>.original0` (g) and `original1` (v); a state dict of the older weight_norm, with
    `<name>_g` and `<name>_v`, loads too. Source: arXiv:1602.07868.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict, prefix: str, *_: object) -> None:
        old = (f"{prefix}{name}_g", f"{prefix}{name}_v")
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Moves u and v (in place) towards the singular vectors of the largest singular value."""
    with strata.no_grad():
        for _ in range(steps):
            u.copy_(F.normalize(strata.mv(matrix, v), dim=0, eps=eps))
            v.copy_(F.normalize(strata.mv(matrix.t(), u), dim=0, eps=eps))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as (size of dim, the rest)."""
    return weight.movedim(dim, 0).flatten(1) if dim else weight.flatten(1)


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, {weight.dim() - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() == 1:
            return
        self.n_power_iterations = n_power_iterations
        with strata.no_grad():
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.shape
            u = F.normalize(matrix.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(matrix.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            power_iteration(matrix, u, v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        sigma = strata.vdot(self._u.clone(), strata.mv(matrix, self._v.clone()))
        return weight / sigma

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides the parameter by its largest singular value, which power iteration follows in training; the module.

    The weight is read as a matrix whose rows are `dim`: 1 for transposed convolutions, else 0. ValueError for a name
    that is no parameter. Source: arXiv:1802.05957.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
