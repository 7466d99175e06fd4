"""The parametrization of orthogonal matrices. Sources: arXiv:1901.08428 (exponential), arXiv:1909.09501 (trivializations)."""

from __future__ import annotations

import strata
from strata import Tensor

from ..modules.module import Module
from .parametrize import register_parametrization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["orthogonal"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _tall(x: Tensor) -> tuple[Tensor, bool]:
    """The matrices with no fewer rows than columns, and whether they had to be transposed for it."""
    wide = x.size(-2) < x.size(-1)
    return (x.mT if wide else x), wide


def _with_positive_diagonal(x: Tensor) -> Tensor:
    """The orthogonal factor of square matrices whose triangular one has a positive diagonal."""
    q, r = strata.linalg.qr(x)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(x: Tensor) -> bool:
    eye = strata.eye(x.size(-1), dtype=x.dtype, device=x.device)
    return bool(strata.allclose(x.mH @ x, eye, atol=10 * x.size(-1) * strata.finfo(x.dtype).eps))


class _Orthogonal(Module):
    """Any matrix to one with orthonormal columns, or rows where it is wide; `base` is where 0 goes."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        x, wide = _tall(X)
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            tau = 2.0 / (1.0 + below.square().sum(-2))
            signs = x.diagonal(dim1=-2, dim2=-1).detach().sign().unsqueeze(-2)
            q = strata.linalg.householder_product(below, tau) * signs
        else:
            x = x.tril()
            x = x if n == k else strata.cat([x, x.new_zeros(*x.shape[:-1], n - k)], -1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = strata.matrix_exp(skew)
            else:
                eye = strata.eye(n, dtype=skew.dtype, device=skew.device)
                q = strata.linalg.solve(eye - skew / 2, eye + skew / 2)
            q = q[..., :k]
        if "base" in self._buffers:
            q = self.base @ q
        return q.mT if wide else q

    @strata.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """A matrix that forward takes to Q, made orthogonal where it is not. ValueError for another shape."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        q, wide = _tall(Q)
        n, k = q.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = strata.geqrf(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            signs = diagonal.sign() * strata.where(tau == 0, -1.0, 1.0)
            a = a - diagonal.diag_embed() if n == k else a.tril(-1) + a.triu(1)
            found = a + strata.nn.functional.pad(signs.diag_embed(), (0, 0, 0, n - k))
            return found.mT if wide else found
        if n != k:
            q = strata.cat([q, strata.randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)], -1)
        self.base = q.clone() if n == k and _is_orthogonal(q) else _with_positive_diagonal(q)
        # Minus the identity: its diagonal holds the signs of the reflections, and what is below it is 0.
        start = strata.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keeps a module's matrix orthogonal: columns, or rows where it is wide, have length 1 and right angles.

    orthogonal_map: "matrix_exp" (default for square matrices), "cayley" or "householder" (default for others).
    use_trivialization: the map begins at the matrix that is there. ValueError for other maps, what is no matrix, or a name
    that is no parameter.
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    register_parametrization(module, name, made, unsafe=True)
    return module
