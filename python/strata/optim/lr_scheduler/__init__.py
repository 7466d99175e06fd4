"""Learning-rate schedules. `step()` once an epoch, or once a batch, after the optimiser's step."""

from __future__ import annotations

from strata import _lazy

from .base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .base import LRScheduler

_LRScheduler = LRScheduler  # the name that programs from before PyTorch 2.0 derive from

_HOMES = {
    "base": "LRScheduler",
    "compose": "ChainedScheduler SequentialLR",
    "cosine": "CosineAnnealingLR CosineAnnealingWarmRestarts",
    "cyclic": "CyclicLR",
    "factor": "ConstantLR ExponentialLR LinearLR MultiStepLR PolynomialLR StepLR",
    "function": "LambdaLR MultiplicativeLR",
    "one_cycle": "OneCycleLR",
    "plateau": "ReduceLROnPlateau",
}

__all__ = _lazy.listed(_HOMES)
__getattr__, __dir__ = _lazy.of(globals(), _HOMES)
