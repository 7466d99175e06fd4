"""A softmax over many classes by clusters. Source: arXiv:1609.04309."""

from __future__ import annotations

from collections import namedtuple

import strata
from strata import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Frequent classes, below cutoffs[0], in the head; the others in clusters between the cutoffs, each a class of the
    head and a tail of its own, whose inner size falls by div_value from one to the next. Classes go by frequency.

    forward(input (N, in_features) or (in_features), target (N) or ()) gives (output, loss): log probabilities of the
    targets, and the mean of their negatives. ValueError for cutoffs that do not ascend within 1 to n_classes - 1.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ascending = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not ascending or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False), 1):
            inner = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, device, dtype), Linear(inner, end - start, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        """As Linear does, for the head and every tail."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1 or (target_.dim() and input_.size(0) != target_.size(0)):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        batched = target_.dim() == 1
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        if target.numel() and (bool((target < 0).any()) or bool((target >= self.n_classes).any())):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        chosen = target.clamp(max=self.shortlist_size - 1)
        output = input.new_zeros(target.size(0))
        for i, (start, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            rows = ((target >= start) & (target < end)).nonzero().squeeze(1)
            if rows.numel():
                chosen = chosen.index_fill(0, rows, self.shortlist_size + i)
                inside = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
                picked = inside.gather(1, (target.index_select(0, rows) - start).unsqueeze(1)).squeeze(1)
                output = output.index_copy(0, rows, picked.to(output.dtype))
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, chosen.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log probabilities of all classes: (N, in_features) to (N, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return strata.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: (N, in_features) to (N)."""
        return self.log_prob(input).argmax(1)
