"""Decompositions of low rank by random projections (Halko, Martinsson, Tropp, arXiv:0909.4061, 4.4 and 5.1)."""

from __future__ import annotations

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from strata import Tensor


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns (..., m, q) that nearly span those of a, after niter iterations of its powers."""
    x = strata.randn(a.shape[-1], q, dtype=a.dtype, device=a.device)
    found = strata.linalg.qr(a @ x).Q
    for _ in range(niter):
        found = strata.linalg.qr(a @ strata.linalg.qr(a.mH @ found).Q).Q
    return found


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U (..., m, q), S (..., q) and V (..., n, q) of A (..., m, n) of rank about q, A nearly U diag(S) V^H; of A - M with
    M. A larger q than the rank and more iterations come nearer. strata.manual_seed repeats it."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if A.dim() < 2:
        raise ValueError(f"svd_lowrank: expected A with 2 or more dims, got shape {tuple(A.shape)}")
    m, n = A.shape[-2:]
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    a = A if M is None else A - M.expand(A.shape)
    if m < n:
        basis = _basis(a.mH, q, niter)
        u, s, vh = strata.linalg.svd(a @ basis, full_matrices=False)
        return u, s, basis @ vh.mH
    basis = _basis(a, q, niter)
    u, s, vh = strata.linalg.svd(basis.mH @ a, full_matrices=False)
    return basis @ u, s, vh.mH.resolve_conj()


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """svd_lowrank of A (..., m, n) less the mean of its rows (unless center is off): the columns of V are its principal
    directions, S^2 / (m - 1) their variances. q is min(6, m, n) unless given."""
    if not strata.is_tensor(A):
        raise TypeError(f"pca_lowrank: expected a tensor, got {type(A).__name__}")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter)
