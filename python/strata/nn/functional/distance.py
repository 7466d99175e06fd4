"""Distances and similarities between tensors."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_variadic, overridden


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(norm(x), eps), with the p-norm along `dim`. `out` receives the result; no gradient then."""
    if has_torch_function_variadic(input, out):
        return overridden(normalize, (input, out), locals())
    norm = _ops.linalg_vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else strata.div(input, norm, out=out)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dimension; the inputs are broadcast."""
    if has_torch_function_variadic(x1, x2):
        return overridden(pairwise_distance, (x1, x2), locals())
    return _ops.pairwise_distance(x1, x2, p, eps, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Dot product along `dim` of x1 / max(|x1|, eps) and x2 / max(|x2|, eps); the inputs are broadcast."""
    if has_torch_function_variadic(x1, x2):
        return overridden(cosine_similarity, (x1, x2), locals())
    return _ops.cosine_similarity(x1, x2, dim, eps)
