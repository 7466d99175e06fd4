"""The normal distribution of vectors, by a covariance matrix or by one of low rank."""

from __future__ import annotations

import math

import strata
from strata import Tensor

from . import constraints
from .distribution import Distribution, lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of positive definite matrices."""
    inverse = strata.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    eye = strata.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return strata.linalg.solve_triangular(inverse, eye.expand_as(precision), upper=False)


def squared_distance(factor: Tensor, x: Tensor) -> Tensor:
    """|factor^-1 x|^2 for lower triangular factors (*, n, n) and vectors (*, n); batch dims are broadcast."""
    batch = strata.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    n = x.shape[-1]
    factor, x = factor.expand(*batch, n, n), x.expand(*batch, n)
    return strata.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False).squeeze(-1).square().sum(-1)


class MultivariateNormal(Distribution):
    """Normal vectors of mean loc; exactly one of covariance_matrix, precision_matrix and scale_tril says the spread."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((self._given, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{self._given} must be at least two-dimensional, with optional leading batch dimensions")
        batch = strata.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, self._given, matrix.expand(*batch, -1, -1))
        self.loc = loc.expand(*batch, -1)
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if self._given == "scale_tril":
            self._factor = matrix
        elif self._given == "covariance_matrix":
            self._factor = strata.linalg.cholesky(matrix)
        else:
            self._factor = precision_to_scale_tril(matrix)

    @property
    def _unbroadcasted_scale_tril(self) -> Tensor:
        return self._factor

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MultivariateNormal:
        shape = strata.Size(batch_shape)
        return self._alike(MultivariateNormal(
            self.loc.expand(*shape, -1), scale_tril=self._factor.expand(*shape, -1, -1), validate_args=False
        ))

    @lazily
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._factor.expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazily
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return (self._factor @ self._factor.mT).expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazily
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        eye = strata.eye(self._event_shape[0], dtype=self.loc.dtype, device=self.loc.device)
        inverse = strata.cholesky_solve(eye.expand_as(self._factor), self._factor)
        return inverse.expand(*self._batch_shape, *self._event_shape, *self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._factor.pow(2).sum(-1).expand(*self._batch_shape, *self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = strata.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self._factor @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        distance = squared_distance(self._factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return found.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of covariance cov_factor cov_factor^T + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        n = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n[0]} x m")
        if cov_diag.shape[-1:] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {n}")
        batch = strata.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, -1, -1)
        self.cov_diag = cov_diag.expand(*batch, -1)
        # By the matrix determinant lemma everything needs the factor of a small matrix only.
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        small = scaled @ self.cov_factor
        eye = strata.eye(small.shape[-1], dtype=small.dtype, device=small.device)
        self._capacitance = strata.linalg.cholesky(small + eye)
        super().__init__(batch, n, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> LowRankMultivariateNormal:
        shape = strata.Size(batch_shape)
        return LowRankMultivariateNormal(
            self.loc.expand(*shape, -1), self.cov_factor.expand(*shape, -1, -1), self.cov_diag.expand(*shape, -1), False
        )

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Tensor:
        return strata.linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = strata.linalg.solve_triangular(self._capacitance, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - a.mT @ a

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = strata.randn([*shape[:-1], self.cov_factor.shape[-1]], **like)
        own = strata.randn(shape, **like)
        return self.loc + (self.cov_factor @ common.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * own

    def _log_det(self) -> Tensor:
        return 2 * self._capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        diff = value - self.loc
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        part = (scaled @ diff.unsqueeze(-1)).squeeze(-1)
        distance = (diff.pow(2) / self.cov_diag).sum(-1) - squared_distance(self._capacitance, part)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
