"""A linear layer and the cross entropy of its outputs, as one loss."""

from __future__ import annotations

import dataclasses
import math

from strata import Tensor

from .. import functional as F
from .linear import Linear
from .loss import _WeightedLoss

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch cuts the batch to save memory; accepted, and the logits are made whole."""

    allow_retain_graph: bool = False
    acc_policy: str = "auto"
    chunking_method: str = "auto"


class LinearCrossEntropyLoss(_WeightedLoss):
    """linear_cross_entropy with the weights of a linear layer of its own.

    out_features: dims of a loss of several outputs. RuntimeError for a weight of another shape than (num_classes,), or
    a label_smoothing outside of [0, 1].
    """

    __module__ = "strata.nn.modules.loss"  # where PyTorch's files have it

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        if not isinstance(out_features, (tuple, list)):
            raise TypeError(f"LinearCrossEntropyLoss: out_features: expected a tuple of numbers, got {type(out_features).__name__}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
