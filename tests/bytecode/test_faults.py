"""A fault of the capture itself is told of, and the function runs as it is."""

import pytest
import strata
from strata._bytecode import entry, reasons
from strata._bytecode.tracer import Tracer


def broken(self, *args):
    raise ZeroDivisionError("made by a test")


def f(x):
    return x[0] + 1


@pytest.mark.parametrize("mode", ["warn", "raise"])
def test_a_fault_is_told_of(monkeypatch, mode):
    monkeypatch.setattr(reasons, "internal_errors", mode)
    monkeypatch.setattr(Tracer, "getitem", broken)
    compiled, text = strata.compile(f), r"(?s)internal error.*ZeroDivisionError: made by a test \(test_faults.py:\d+\).*report.*in f"
    if mode == "raise":
        with pytest.raises(reasons.InternalError, match=text):
            compiled(strata.ones(2))
        return
    with pytest.warns(RuntimeWarning, match=text):
        assert compiled(strata.ones(2)).item() == 2
    assert "ZeroDivisionError" in compiled._strata_compiled.breaks[0].reason


def test_a_capture_that_restarts_too_often_runs_as_it_is(monkeypatch):
    def f(x):
        for i in range(4):
            print(x.sum() > 0, end="")
            x = x + i
        return x

    monkeypatch.setattr(entry, "MAX_RESTARTS", 1)
    x = strata.ones(3)
    assert strata.equal(strata.compile(f)(x), f(x))
