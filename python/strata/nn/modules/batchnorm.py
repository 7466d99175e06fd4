"""Batch normalisation. Source: arXiv:1502.03167. Its base also serves instancenorm.py."""

from __future__ import annotations

import strata
from strata import Tensor, _lazy

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _NormBase(Module):
    """Weights, biases and running statistics per channel; `_dims` are the numbers of dimensions accepted."""

    _version = 2  # since 2 the number of batches is part of the state
    _dims: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = strata.empty(num_features, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, Parameter(values) if wanted else None)
        if track_running_stats:
            self.register_buffer("running_mean", strata.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", strata.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", strata.tensor(0, dtype=strata.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Running mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Fresh running statistics, weights 1, biases 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            accepted = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {accepted} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        if self.track_running_stats and local_metadata.get("version", 1) < 2 and key not in state_dict:
            count = self.num_batches_tracked
            fresh = count is None or count.is_meta
            state_dict[key] = strata.tensor(0, dtype=strata.int64) if fresh else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Statistics of the batch in training, the running ones otherwise; momentum None averages over all batches."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        track = self.training and self.track_running_stats
        if track and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        # Training without tracking neither reads nor writes the running statistics.
        running = not self.training or track
        mean, var = (self.running_mean, self.running_var) if running else (None, None)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L). ValueError for another number of dimensions."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W). ValueError for another number of dimensions."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W). ValueError for another number of dimensions."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes; this version has one, so it is that of (N, C, *).

    process_group: NotImplementedError for one.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        if process_group is not None:
            raise NotImplementedError("SyncBatchNorm: there are no process groups in this version; leave it None")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = None

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch norm in it as a SyncBatchNorm of the same parameters and statistics."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group
            )
            result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d"})
