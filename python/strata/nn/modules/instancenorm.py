"""Instance normalisation. Source: arXiv:1607.08022."""

from __future__ import annotations

import warnings

from strata import Tensor, _lazy

from .. import functional as F
from .batchnorm import _NormBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _InstanceNorm(_NormBase):
    """Inputs (N, C, ...) or (C, ...). Its own statistics unless it tracks running ones and is not training."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == self._dims[0]
        channel = 0 if alone else 1
        if input.size(channel) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel} to match num_features ({self.num_features}), "
                    f"but got: {input.size(channel)}."
                )
            warnings.warn(
                f"input's size at dim={channel} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        result = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)

# Names that PyTorch has in this file.
__getattr__, __dir__ = _lazy.of(globals(), {".lazy": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"})
