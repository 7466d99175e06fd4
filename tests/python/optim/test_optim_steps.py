"""Optimisers and schedules against numbers recorded from PyTorch."""

import json
import warnings
from pathlib import Path

import optim_cases
import pytest
import strata
from strata import optim

DATA = Path(__file__).parents[2] / "data/nn"
STEPS = json.loads((DATA / "optimizers.json").read_text())
SCHEDULES = json.loads((DATA / "schedules.json").read_text())
CASES = {f"{name}-{i}": (name, options) for i, (name, options) in enumerate(optim_cases.OPTIMIZERS)}


def close(got, expected):
    for row, recorded in zip(got, expected, strict=True):
        assert row == pytest.approx(recorded, rel=2e-5, abs=2e-6)


@pytest.mark.parametrize("key", CASES)
def test_five_steps(key):
    name, options = CASES[key]
    got = optim_cases.run_optimizer(strata, optim, name, options)
    close(got["values"], STEPS[key]["values"])
    assert got["repr"] == STEPS[key]["repr"]


@pytest.mark.parametrize("key", [key for key in CASES if "dampening" not in CASES[key][1]])
def test_state_made_before_the_first_step_changes_nothing(key):
    name, options = CASES[key]
    got = optim_cases.run_optimizer(strata, optim, name, options, make=lambda optimizer: optimizer.init_state())
    close(got["values"], STEPS[key]["values"])


@pytest.mark.parametrize("key", ["Adam-5", "AdamW-9", "SGD-2"])
def test_learning_rate_as_a_tensor(key):
    name, options = CASES[key]
    got = optim_cases.run_optimizer(strata, optim, name, {**options, "lr": strata.tensor(options["lr"])})
    close(got["values"], STEPS[key]["values"])


@pytest.mark.parametrize("key", CASES)
def test_resuming_from_a_state_dict(key):
    name, options = CASES[key]

    def make(params):
        return getattr(optim, name)([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}], **options)

    params = optim_cases.parameters(strata)
    first = make(params)
    values = list(optim_cases.train(strata, first, params, 3))
    second = make(params)
    second.load_state_dict(first.state_dict())
    values += optim_cases.train(strata, second, params, 2, first=3)
    close(values, STEPS[key]["values"])


@pytest.mark.parametrize("number", range(len(optim_cases.LBFGS)))
def test_lbfgs(number):
    got = optim_cases.run_lbfgs(strata, optim, optim_cases.LBFGS[number])
    recorded = STEPS[f"LBFGS-{number}"]
    assert got["calls"] == recorded["calls"]
    assert got["values"] == pytest.approx(recorded["values"], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rule", ["original", "match_rms_adamw"])
def test_muon(rule):
    got = optim_cases.run_muon(strata, optim, {"adjust_lr_fn": rule})
    assert got == pytest.approx(STEPS[f"Muon-{rule}"], abs=0.01)


@pytest.mark.parametrize("name", optim_cases.SCHEDULES)
def test_schedule(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = optim_cases.run_schedule(strata, optim, name)
    for row, recorded in zip(got, SCHEDULES[name], strict=True):
        assert row == pytest.approx(recorded, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("number", range(len(optim_cases.PLATEAUS)))
def test_plateau(number):
    got = optim_cases.run_plateau(strata, optim, optim_cases.PLATEAUS[number])
    assert got == pytest.approx(SCHEDULES[f"plateau-{number}"], rel=1e-9)
