"""Ints and floats that differ from call to call, sizes that fail, and where warnings of limits point."""

import math
import warnings

import pytest
import strata
import strata.nn.functional as F


def entries(compiled):
    c = compiled._strata_compiled
    return [e for table in (c.start, *c.tables.values()) for e in table.entries]


FLOATS = {
    "product": lambda x, t: x * t,
    "power": lambda x, t: (x + 1) ** t,
    "computed": lambda x, t: x * math.cos(t) + math.sqrt(t) - t / 2,
    "an argument": lambda x, t: x.clamp(-t, t).add(x, alpha=t),
    "a probability": lambda x, t: F.dropout(x, min(t / 100, 1.0)),
    "data": lambda x, t: strata.full((4,), t) + strata.tensor([t, 1.0, 2.0, t]) + x,
    "handed on": lambda x, t: (x + 1, t),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_become_symbols_at_their_second_value(name):
    f = FLOATS[name]
    compiled, x = strata.compile(f, fullgraph=True), strata.arange(4.0)
    for i in range(20):
        t = 0.5 + 0.25 * i
        strata.manual_seed(i)
        want = f(x, t)
        strata.manual_seed(i)
        found = compiled(x, t)
        assert all(a == b if isinstance(a, float) else strata.equal(a, b) for a, b in zip(found, want, strict=True))
    assert len(entries(compiled)) == 2


def test_zeros_infinities_and_not_a_number():
    compiled, x = strata.compile(lambda x, t: (x / t, t)), strata.ones(2)
    for t in (1.0, 2.0, 0.0, -0.0, math.inf, -math.inf, math.nan, 0.0, math.nan):
        found, same = compiled(x, t)
        assert str(found.tolist()) == str((x / t).tolist()) and str(same) == str(t)
    assert len(entries(compiled)) == 2


def test_a_comparison_of_a_float_is_a_condition():
    f = lambda x, t: x * t if t < 3 else x - t  # noqa: E731
    compiled, x = strata.compile(f), strata.arange(4.0)
    for i in range(12):
        assert strata.equal(compiled(x, 0.5 * i), f(x, 0.5 * i))
    assert len(entries(compiled)) == 3


def test_an_attribute_that_decays():
    class Settings:
        rate = 0.5

    settings = Settings()
    f = lambda x: x * settings.rate  # noqa: E731
    compiled, x = strata.compile(f), strata.arange(4.0)
    for _ in range(12):
        settings.rate *= 0.9
        assert strata.equal(compiled(x), f(x))
    assert len(entries(compiled)) == 2


@pytest.mark.parametrize("start", [2, 2.5])
def test_a_number_that_is_always_new_runs_as_it_is_in_the_end(start):
    f = lambda x, n: x * n  # noqa: E731
    compiled, x = strata.compile(f), strata.arange(4.0)
    with pytest.warns(UserWarning, match="new at almost every call") as told:
        for i in range(50):
            assert strata.equal(compiled(x, start + i), f(x, start + i))
    assert len(told) == 1 and told[0].filename == __file__


def test_numbers_that_come_again_stay_compiled():
    compiled, x = strata.compile(lambda x, n: x * n), strata.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            for i in range(40):
                compiled(x, 0.5 + i)
                compiled(x, 0.5 + i)


def test_failing_sizes_do_not_count_towards_the_limit():
    compiled = strata.compile(lambda x: x.view(2, -1) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(2, 40):
            if n % 2:
                with pytest.raises(RuntimeError, match="invalid"):
                    compiled(strata.ones(n))
            else:
                assert compiled(strata.ones(n)).shape == (2, n // 2)


def test_a_warning_of_the_limit_is_of_the_line_that_called():
    def inner(x, name):
        return x + len(name)

    def outer(x, name):
        print(x.sum() > 0, end="")
        return inner(x, name)

    compiled = strata.compile(inner)
    with pytest.warns(UserWarning, match="recompile limit") as told:
        for i in range(10):
            compiled(strata.ones(2), "a" * i)
    assert told[0].filename == __file__
