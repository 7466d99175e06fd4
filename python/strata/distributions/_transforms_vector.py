"""Transforms of vectors and matrices."""

from __future__ import annotations

import math

import strata
import strata.nn.functional as F
from strata import Tensor

from . import constraints
from ._transforms_pointwise import _Same
from .transforms import Transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .distribution import Distribution


class SoftmaxTransform(_Same):
    """softmax over the last dim; not bijective, the inverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Same):
    """n numbers to n + 1 parts of 1, each a share of what the ones before it left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        left = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        share = _clipped_sigmoid(x - left.log())
        return F.pad(share, [0, 1], value=1) * F.pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cut = y[..., :-1]
        left = y.shape[-1] - cut.new_ones(cut.shape[-1]).cumsum(-1)
        rest = (1 - cut.cumsum(-1)).clamp(min=strata.finfo(y.dtype).tiny)
        return cut.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - left.log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return strata.Size([*shape[:-1], shape[-1] + 1])

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return strata.Size([*shape[:-1], shape[-1] - 1])


def _clipped_sigmoid(x: Tensor) -> Tensor:
    limits = strata.finfo(x.dtype)
    return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)


class LowerCholeskyTransform(_Same):
    """Matrices to lower triangular ones with a positive diagonal, its exp."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Same):
    """Matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(strata.linalg.cholesky(y))


class CorrCholeskyTransform(_Same):
    """n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of n variables."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = strata.finfo(x.dtype).eps
        rows = _below_diagonal(x.clamp(min=-1 + eps, max=1 - eps))
        left = (1 - rows**2).sqrt().cumprod(-1)
        rows = rows + strata.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device)
        return rows * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        used = 1 - (y * y).cumsum(-1)
        left = F.pad(used[..., :-1], [1, 0], value=1)
        ratio = _entries(y) / _entries(left).sqrt()
        return (ratio.log1p() - ratio.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        used = 1 - (y * y).cumsum(-1)
        terms = _entries(used, -2) if y.shape[-1] > 2 else used.new_zeros(used.shape[:-2] + (0,))
        sticks = 0.5 * terms.log().sum(-1)
        return sticks - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return strata.Size([*shape[:-1], n, n])

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return strata.Size([*shape[:-2], shape[-1] * (shape[-1] - 1) // 2])


def _below_diagonal(x: Tensor) -> Tensor:
    """Vectors to matrices with them below the diagonal, row by row."""
    n = round((0.25 + 2 * x.shape[-1]) ** 0.5 + 0.5)
    rows, columns = strata.tril_indices(n, n, -1)
    found = x.new_zeros(x.shape[:-1] + (n * n,))
    return found.index_add(-1, rows * n + columns, x).reshape(x.shape[:-1] + (n, n))


def _entries(matrix: Tensor, diagonal: int = -1) -> Tensor:
    """The elements of matrices on and below that diagonal, row by row."""
    n = matrix.shape[-1]
    rows, columns = strata.tril_indices(n, n, diagonal)
    return matrix.flatten(-2).index_select(-1, rows * n + columns)


class _Parts(Transform):
    """Several transforms side by side along a dim."""

    transforms: list[Transform]
    dim: int

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)


class CatTransform(_Parts):
    """Transforms of pieces of the lengths given, 1 each by default, along a dim."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"CatTransform: expected one length for each of {len(self.transforms)}, got {len(self.lengths)}")
        self.dim = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(x), strict=True)
        return strata.cat([t(piece) for t, piece in pieces], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(y), strict=True)
        return strata.cat([t.inv(piece) for t, piece in pieces], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y), strict=True):
            part = t.log_abs_det_jacobian(a, b)
            extra = self.event_dim - t.event_dim
            found.append(part.flatten(part.dim() - extra).sum(-1) if extra else part)
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return strata.cat(found, dim) if dim < 0 else sum(found[1:], found[0])

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """One transform for each slice of a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return strata.stack([t(v) for t, v in zip(self.transforms, x.unbind(self.dim), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return strata.stack([t.inv(v) for t, v in zip(self.transforms, y.unbind(self.dim), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return strata.stack([t.log_abs_det_jacobian(a, b) for t, a, b in slices], self.dim)

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)
