"""Connectionist temporal classification in NumPy, for references and samples."""

from __future__ import annotations

import numpy as np


def ctc_rows(targets, lengths):
    """Each sample's targets."""
    targets, lengths = targets.astype(np.int64), lengths.astype(np.int64)
    ends = np.cumsum(lengths)
    return [targets[n, :k] if targets.ndim == 2 else targets[ends[n] - k:ends[n]] for n, k in enumerate(lengths)]


def ctc_alpha(logs, labels):
    """The logarithms of the sums over beginnings that end in each state, by time."""
    found = np.full((len(logs), len(labels)), -np.inf)
    for t, s in np.ndindex(found.shape):
        before = [0.0] if t == 0 and s < 2 else [] if t == 0 else list(found[t - 1, max(s - 1, 0):s + 1])
        if t and s > 1 and labels[s] != labels[s - 2]:
            before.append(found[t - 1, s - 2])
        found[t, s] = np.logaddexp.reduce([-np.inf, *before]) + logs[t, labels[s]]
    return found


def ctc_losses(log_probs, targets, input_lengths, target_lengths, blank=0):
    if log_probs.ndim != 3:
        return "RuntimeError"
    time, batch, _ = log_probs.shape
    wide, narrow = 2 * targets.shape[-1] + 1, 2 * targets.shape[-1] + batch
    losses, alpha = np.zeros(batch), np.full((batch, time, wide) if targets.ndim == 2 else (1, time, narrow), -np.inf)
    begin = 0
    for n, row in enumerate(ctc_rows(targets, target_lengths)):
        labels = np.full(2 * len(row) + 1, blank)
        labels[1::2] = row
        length = int(input_lengths[n])
        made = ctc_alpha(log_probs[:length, n].astype(np.float64), labels)
        last = made[-1, -2:] if length else [0.0 if len(row) == 0 else -np.inf]
        losses[n] = -np.logaddexp.reduce(last)
        at = (n, slice(length), slice(len(labels))) if targets.ndim == 2 else (0, slice(length), slice(begin, begin + len(labels)))
        alpha[at] = made
        begin += len(labels)
    return [losses, alpha]


def ctc_gradient(grad, log_probs, targets, input_lengths, target_lengths, losses, blank, zero_infinity=False):
    """Of log_probs that are logarithms of probabilities: their probabilities less the share of alignments through each."""
    if grad.shape != losses.shape:
        return "RuntimeError"
    found = np.zeros(log_probs.shape)
    for n, row in enumerate(ctc_rows(targets, target_lengths)):
        length = int(input_lengths[n])
        if length == 0 or zero_infinity and np.isposinf(losses[n]):
            continue
        labels = np.full(2 * len(row) + 1, blank)
        labels[1::2] = row
        logs = log_probs[:length, n].astype(np.float64)
        forth = ctc_alpha(logs, labels)
        back = ctc_alpha(logs[::-1], labels[::-1])[::-1, ::-1]
        for t, c in np.ndindex(logs.shape):
            through = np.logaddexp.reduce([-np.inf, *(forth + back)[t, labels == c]])
            found[t, n, c] = (np.exp(logs[t, c]) - np.exp(through + losses[n] - logs[t, c])) * grad[n]
    return found
