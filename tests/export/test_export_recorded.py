"""Signatures and nodes of exported programs are those that PyTorch gives (tools/record_export.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import strata
import strata.export
from export_models import cases, recorded

WANT = json.loads((Path(__file__).resolve().parent.parent / "data/export.json").read_text())
# What is one operator there is composed of others here, or the other way round; a loop's first condition is before it.
OTHER_NODES = {"encoder", "lstm", "bag", "loop"}


def test_the_modules_are_those_that_were_recorded() -> None:
    assert WANT.keys() == cases().keys()


@pytest.mark.parametrize("name", WANT)
def test_a_program_is_named_as_in_pytorch(name: str) -> None:
    module, example, _ = cases()[name]
    got, want = recorded(strata.export.export(module, example)), WANT[name]
    if name not in OTHER_NODES:
        assert got == want
        return
    inputs = [line for line in want["signature"] if "_OUTPUT" not in line]
    assert [line for line in got["signature"] if "_OUTPUT" not in line] == inputs
    assert len(got["signature"]) == len(want["signature"])
    assert [n for n in got["nodes"] if n.startswith("placeholder")] == [n for n in want["nodes"] if n.startswith("placeholder")]
