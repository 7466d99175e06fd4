"""Learning-rate schedules. `step()` once an epoch, or once a batch, after the optimiser's step."""

from __future__ import annotations

import importlib

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LRScheduler = LRScheduler  # the name that programs from before PyTorch 2.0 derive from

_HOME = {
    "ChainedScheduler": "compose",
    "ConstantLR": "factor",
    "CosineAnnealingLR": "cosine",
    "CosineAnnealingWarmRestarts": "cosine",
    "CyclicLR": "cyclic",
    "ExponentialLR": "factor",
    "LRScheduler": "base",
    "LambdaLR": "function",
    "LinearLR": "factor",
    "MultiStepLR": "factor",
    "MultiplicativeLR": "function",
    "OneCycleLR": "one_cycle",
    "PolynomialLR": "factor",
    "ReduceLROnPlateau": "plateau",
    "SequentialLR": "compose",
    "StepLR": "factor",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
