"""The table of constructs: each is captured, broken or raised as it says, with eager's results."""

import copy
import re

import more_constructs
import pytest
import strata
from constructs import ROWS
from strata._bytecode import reasons


def outcome(f, arguments):
    """What a call gives, or raises, and what it leaves of its arguments, as text; objects by what they hold."""
    strata.manual_seed(0)
    try:
        result = f(*arguments)
        if hasattr(result, "__next__"):
            result = list(result)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    shown = [vars(a) if hasattr(a, "__dict__") and not isinstance(a, strata.Tensor) else a for a in arguments]
    return re.sub(r",?\s*grad_fn=<.*?>", "", repr((result, shown)))


def stops(compiled):
    c = compiled._strata_compiled
    return ([c.refusal] if c.refusal else []) + [b.reason for b in c.breaks]


@pytest.mark.parametrize("name, f, makers, expected", ROWS, ids=[r[0] for r in ROWS])
def test_construct(name, f, makers, expected, capsys):
    assert reasons is not None
    kept = {k: copy.copy(v) for k, v in f.__globals__.items() if isinstance(v, (list, dict)) and k.isupper() and k != "ROWS"}
    compiled = strata.compile(f)
    for _ in range(2):
        arguments = [m() for m in makers]
        for k, v in kept.items():
            f.__globals__[k] = copy.copy(v)
        want = outcome(f, arguments)
        printed = capsys.readouterr().out
        again = [m() for m in makers]
        for k, v in kept.items():
            f.__globals__[k] = copy.copy(v)
        assert outcome(compiled, again) == want
        assert capsys.readouterr().out == printed
    found = stops(compiled)
    if expected is None:
        assert not found
    else:
        assert found and expected in found[0]


def test_there_are_eighty():
    assert len(ROWS) >= 80 and more_constructs.ROWS is ROWS
