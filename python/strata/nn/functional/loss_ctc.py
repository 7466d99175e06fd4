"""Connectionist temporal classification."""

from __future__ import annotations

import strata
from strata import Tensor

from .. import _reduction as _Reduction
from .._ops import has_torch_function_variadic, overridden
from .loss import reduced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Stands for log(0): finite, so that differences of it are numbers and have derivatives.
_NEVER = -1e30


def _lengths(name: str, value: Tensor | Sequence[int], count: int, most: int) -> Tensor:
    lengths = value.reshape(-1) if isinstance(value, Tensor) else strata.tensor(list(value), dtype=strata.int64)
    if lengths.is_floating_point() or lengths.numel() != count:
        raise RuntimeError(f"ctc_loss: expected {name} to be {count} integers, got {lengths.numel()} of {lengths.dtype}")
    lengths = lengths.long()
    if count and not 0 <= lengths.min().item() <= lengths.max().item() <= most:
        raise RuntimeError(f"ctc_loss: expected {name} between 0 and {most}, got {lengths.tolist()}")
    return lengths


def _padded(targets: Tensor, lengths: Tensor) -> Tensor:
    """Targets as (N, S), whether they come so or one after the other."""
    if targets.dim() == 2:
        return targets.long()
    rows = targets.long().split(lengths.tolist())
    padded = strata.zeros((len(rows), max([len(r) for r in rows], default=0)), dtype=strata.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def _shifted(alpha: Tensor, by: int) -> Tensor:
    return strata.cat([strata.full_like(alpha[:, :by], _NEVER), alpha[:, : alpha.size(1) - by]], 1)


def _losses(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int) -> Tensor:
    """Less the logarithm of the sum over alignments, for each sample: the forward recursion of Graves et al., 2006.

    State 2 i + 1 stands for target i, the even ones for the blanks around it.
    """
    time, batch, _ = log_probs.shape
    states = 2 * targets.size(1) + 1
    labels = strata.full((batch, states), blank, dtype=strata.int64)
    labels[:, 1::2] = targets
    # A blank between two targets may be left out where they differ.
    skips = strata.zeros((batch, states), dtype=strata.bool)
    skips[:, 3::2] = targets[:, 1:] != targets[:, :-1]
    emitted = log_probs.gather(2, labels.expand(time, batch, states))
    begins = (strata.arange(states) < 2).expand(batch, states)
    alpha = strata.where(begins, emitted[0], _NEVER)
    running = (strata.arange(time).unsqueeze(1) < input_lengths).unsqueeze(2)
    for t in range(1, time):
        two_back = strata.where(skips, _shifted(alpha, 2), _NEVER) if states > 2 else alpha + _NEVER
        ways = strata.stack([alpha, _shifted(alpha, 1), two_back])
        alpha = strata.where(running[t], ways.logsumexp(0) + emitted[t], alpha)
    last = alpha.gather(1, 2 * target_lengths.unsqueeze(1))
    before = alpha.gather(1, (2 * target_lengths - 1).clamp_min(0).unsqueeze(1))
    before = strata.where(target_lengths.unsqueeze(1) > 0, before, _NEVER)
    loss = -strata.cat([last, before], 1).logsumexp(1)
    # PyTorch's derivative is that of log_probs which are a log_softmax: it has their probabilities as one more term.
    shares = (log_probs.exp() * running).sum((0, 2))
    loss = loss + (shares - shares.detach())
    none = input_lengths == 0
    loss = strata.where(none, strata.where(target_lengths == 0, 0.0, float("inf")), loss)
    return strata.where(loss > -_NEVER / 2, float("inf"), loss)


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
    _Reduction.get_enum(reduction)
    if log_probs.dtype not in (strata.float32, strata.float64):
        raise NotImplementedError(f"ctc_loss is not implemented for {log_probs.dtype}; convert log_probs to float32 first")
    if targets.dtype not in (strata.int64, strata.int32):
        raise RuntimeError(f"ctc_loss: expected targets of int32 or int64, got {targets.dtype}")
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    if log_probs.dim() != 3 or log_probs.size(0) == 0:
        raise RuntimeError(f"ctc_loss: expected log_probs of shape (T, N, C) with T > 0, got {tuple(log_probs.shape)}")
    if not 0 <= blank < log_probs.size(2):
        raise RuntimeError(f"ctc_loss: expected blank in [0, {log_probs.size(2)}), got {blank}")
    time, batch, _ = log_probs.shape
    longest = targets.size(1) if targets.dim() == 2 else targets.numel()
    inputs = _lengths("input_lengths", input_lengths, batch, time)
    wanted = _lengths("target_lengths", target_lengths, batch, longest)
    if targets.dim() != 2 and targets.numel() != wanted.sum().item():
        raise RuntimeError(f"ctc_loss: expected {wanted.sum().item()} targets, got {targets.numel()}")
    rows = _padded(targets.reshape(1, -1) if single else targets, wanted)
    # Sums of many logarithms: in double precision, rounded once.
    loss = _losses(log_probs.double(), rows, inputs, wanted, blank).to(log_probs.dtype)
    if zero_infinity:
        loss = loss.masked_fill(loss == float("inf"), 0.0)
    if reduction == "mean":
        return (loss / wanted.clamp_min(1)).mean()
    return loss[0] if single and reduction == "none" else reduced(loss, reduction)
