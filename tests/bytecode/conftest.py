"""Faults of a capture raise in these tests: eager's right answer would hide them."""

import pytest
from strata._bytecode import reasons


@pytest.fixture(autouse=True)
def faults_raise(monkeypatch):
    monkeypatch.setattr(reasons, "internal_errors", "raise")
