"""Writes tests/data/nn/*.json: what PyTorch gives for the cases of tests/python/nn and tests/python/optim.

Run it with a Python that has PyTorch: python tools/record_nn.py. Nothing random goes in, so a second run changes
nothing but what a new PyTorch computes differently.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/python/nn"), str(ROOT / "tests/python/optim")]
nn_cases = importlib.import_module("nn_cases")
optim_cases = importlib.import_module("optim_cases")


def _write(name: str, entries: dict) -> None:
    """One entry a line, so that a change shows as the lines that it concerns."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items()]
    (ROOT / "tests/data/nn").mkdir(parents=True, exist_ok=True)
    (ROOT / f"tests/data/nn/{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _optimizers() -> dict:
    entries = {}
    for i, (name, options) in enumerate(optim_cases.OPTIMIZERS):
        # One tensor at a time: the order of operations that PyTorch documents.
        result = optim_cases.run_optimizer(torch, torch.optim, name, {**options, "foreach": False})
        result["repr"] = result["repr"].replace("foreach: False", "foreach: None")
        entries[f"{name}-{i}"] = result
    for i, options in enumerate(optim_cases.LBFGS):
        entries[f"LBFGS-{i}"] = optim_cases.run_lbfgs(torch, torch.optim, options)
    for rule in ("original", "match_rms_adamw"):
        entries[f"Muon-{rule}"] = optim_cases.run_muon(torch, torch.optim, {"adjust_lr_fn": rule})
    return entries


def main() -> None:
    warnings.simplefilter("ignore")
    _write("layers", {key: nn_cases.run(torch, torch.nn, case) for key, case in nn_cases.cases(torch)})
    _write("optimizers", _optimizers())
    schedules = {name: optim_cases.run_schedule(torch, torch.optim, name) for name in optim_cases.SCHEDULES}
    for i, options in enumerate(optim_cases.PLATEAUS):
        schedules[f"plateau-{i}"] = optim_cases.run_plateau(torch, torch.optim, options)
    _write("schedules", schedules)


if __name__ == "__main__":
    main()
