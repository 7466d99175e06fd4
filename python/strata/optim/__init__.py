"""Optimisers and learning-rate schedules. Names are loaded on first use."""

from __future__ import annotations

from strata import _lazy

_HOMES = {
    "adadelta": "Adadelta",
    "adafactor": "Adafactor",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "asgd": "ASGD",
    "lbfgs": "LBFGS",
    "muon": "Muon",
    "nadam": "NAdam",
    "optimizer": "Optimizer",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "rprop": "Rprop",
    "sgd": "SGD",
    "sparse_adam": "SparseAdam",
}
__all__ = _lazy.listed(_HOMES)

__getattr__, __dir__ = _lazy.of(globals(), _HOMES, " ".join(("lr_scheduler", "swa_utils", *_HOMES)))
