"""The traceback of an error names the program's lines, whoever ran them."""

import sys
import traceback

import pytest
import strata


def innermost(x):
    return x.view(7)


def inner(x):
    for _ in range(2):
        x = innermost(x)
    return x


def outer(x):
    y = x + 1
    return inner(y)


def later(x):
    print(end="")
    y = x * 2
    return y.view(-1)[strata.zeros(1, dtype=strata.int64) + 9]


def handled(x):
    try:
        return inner(x)
    except RuntimeError as error:
        raise ValueError("other") from error


def lines_of(f, x) -> list[tuple[str, str]]:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        f(x)
    found = []
    error = raised.value
    while error is not None:
        found += [(at.name, at.line) for at in traceback.extract_tb(error.__traceback__) if at.filename == __file__ and at.name != "lines_of"]
        error = error.__cause__
    return found


@pytest.mark.parametrize("f", (outer, later, handled), ids=lambda f: f.__name__)
@pytest.mark.parametrize("again", (1, 2))
def test_the_lines_are_those_of_eager(f, again):
    compiled, want = strata.compile(f), lines_of(f, strata.ones(6))
    assert want
    for _ in range(again):
        assert lines_of(compiled, strata.ones(6)) == want


def test_frames_hold_nothing_of_the_capture():
    with pytest.raises(RuntimeError) as raised:
        strata.compile(outer)(strata.ones(6))
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__) if frame.f_code.co_filename == __file__]
    assert [f.f_code.co_qualname for f in frames[-3:]] == ["outer", "inner", "innermost"]
    assert all(f.f_globals["__name__"] == __name__ and f.f_code.co_filename == sys.modules[__name__].__file__ for f in frames)
