"""Files of events that TensorBoard shows, written without TensorBoard."""

from __future__ import annotations

from strata.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
