"""Connectionist temporal classification."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Less the log-probability of `targets` over all alignments with `log_probs`, (T, N, C) or (T, C).

    targets: (N, S), or one row after the other. The mean divides each loss by its target's length first. zero_infinity:
    losses of targets that are too long for their input count as 0.
    """
    if has_torch_function_variadic(log_probs, targets):
        return overridden(ctc_loss, (log_probs, targets), locals())
    lengths = [n if isinstance(n, Tensor) else strata.tensor(list(n), dtype=strata.int64, device=log_probs.device)
               for n in (input_lengths, target_lengths)]
    return strata.ctc_loss(log_probs, targets, *lengths, blank, _Reduction.get_enum(reduction), zero_infinity)
