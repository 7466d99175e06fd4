"""Distributions of matrices: Wishart, and LKJ for correlations."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from . import constraints
from .dirichlet import Beta
from .distribution import Distribution, broadcast_all, lazily
from .exp_family import ExponentialFamily
from .gamma import Chi2
from .multivariate_normal import precision_to_scale_tril

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(ExponentialFamily):
    """The sum of outer products of df normal vectors of mean 0; one of three matrices says their covariance."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((self._given, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, Tensor) else strata.tensor(float(df), dtype=matrix.dtype, device=matrix.device)
        batch = strata.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        n = matrix.shape[-1]
        if bool(self.df.le(n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        setattr(self, self._given, matrix.expand(*batch, -1, -1))
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        if self._given == "scale_tril":
            self._factor = matrix
        elif self._given == "covariance_matrix":
            self._factor = strata.linalg.cholesky(matrix)
        else:
            self._factor = precision_to_scale_tril(matrix)
        steps = strata.arange(n, dtype=matrix.dtype, device=matrix.device)
        self._chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Wishart:
        shape = strata.Size(batch_shape)
        factor = self._factor.expand(*shape, -1, -1)
        return self._alike(Wishart(self.df.expand(shape), scale_tril=factor, validate_args=False))

    @lazily
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._factor.expand(*self._batch_shape, -1, -1)

    @lazily
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return (self._factor @ self._factor.mT).expand(*self._batch_shape, -1, -1)

    @lazily
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        eye = strata.eye(self._event_shape[-1], dtype=self._factor.dtype, device=self._factor.device)
        return strata.cholesky_solve(eye.expand_as(self._factor), self._factor).expand(*self._batch_shape, -1, -1)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2.0) - strata.linalg.slogdet(-2 * x).logabsdet) + strata.mvlgamma(half, n)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (self.covariance_matrix.pow(2) + diagonal[..., :, None] * diagonal[..., None, :])

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        diagonal = self._chi2.rsample(sample_shape).sqrt()
        below = strata.randn(self._extended_shape(sample_shape), dtype=diagonal.dtype, device=diagonal.device).tril(-1)
        factor = self._factor @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def _half_log_det(self) -> Tensor:
        p = self._event_shape[-1]
        return p * math.log(2) / 2 + self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        p = self._event_shape[-1]
        batch = strata.broadcast_shapes(value.shape, self._factor.shape)
        trace = strata.cholesky_solve(value.expand(batch), self._factor.expand(batch)).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -self.df * self._half_log_det() - strata.mvlgamma(self.df / 2, p)
            + (self.df - p - 1) / 2 * strata.linalg.slogdet(value).logabsdet - trace / 2
        )  # fmt: skip

    def entropy(self) -> Tensor:
        p, nu = self._event_shape[-1], self.df
        steps = strata.arange(p, dtype=nu.dtype, device=nu.device) / 2
        mvdigamma = strata.digamma((nu / 2).unsqueeze(-1) - steps).sum(-1)
        return (
            (p + 1) * self._half_log_det() + strata.mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * mvdigamma + nu * p / 2
        )


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices whose density is proportional to det ** (concentration - 1).

    Samples by the onion method. Source: doi:10.1016/j.jmva.2009.04.008.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        offset = strata.cat([strata.zeros(1, **like), strata.arange(dim - 1, **like)])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.shape, strata.Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> LKJCholesky:
        return self._alike(LKJCholesky(self.dim, self.concentration.expand(batch_shape), validate_args=False))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with strata.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = strata.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            length = strata.linalg.norm(normal, dim=-1, keepdim=True)
            rows = y.sqrt() * strata.where(length > 0, normal / length, 0.0)
            left = (1 - rows.square().sum(-1)).clamp(min=strata.finfo(rows.dtype).tiny).sqrt()
            return rows + left.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        steps = strata.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - steps
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + strata.mvlgamma(alpha - 0.5, n) - strata.lgamma(alpha) * n
        return (order * diagonal.log()).sum(-1) - norm
