"""Every layer against numbers recorded from PyTorch: outputs, gradients, buffers, state keys and printed text."""

import json
import warnings
from pathlib import Path

import nn_cases
import pytest
import strata

RECORDED = json.loads((Path(__file__).parents[2] / "data/nn/layers.json").read_text())
CASES = dict(nn_cases.cases(strata))


def close(got, expected):
    assert got["shape"] == expected["shape"]
    assert got["values"] == pytest.approx(expected["values"], rel=2e-4, abs=2e-5, nan_ok=True)


def test_every_record_has_its_case():
    assert list(RECORDED) == list(CASES)


@pytest.mark.parametrize("key", CASES)
def test_layer(key):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = nn_cases.run(strata, strata.nn, CASES[key])
    expected = RECORDED[key]
    assert got["repr"] == expected["repr"]
    assert got["keys"] == expected["keys"]
    for part in ("outputs", "gradients", "buffers"):
        assert len(got[part]) == len(expected[part])
        for mine, recorded in zip(got[part], expected[part], strict=True):
            if recorded is None:
                assert mine is None
            else:
                close(mine, recorded)
