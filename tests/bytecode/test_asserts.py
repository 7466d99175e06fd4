"""Asserts of tensors: a call takes them to hold, looks when its graph has run, and runs as it is where one does not."""

import asserting
import pytest
import strata
from both import same

GOOD, BAD, NAN = (strata.tensor([1.0, second, 3.0, 4.0]) for second in (2.0, -200.0, float("nan")))
FIVE = strata.ones(5)
TRUE, FALSE = strata.tensor(True), strata.tensor(False)
ONE_GRAPH = [
    (asserting.Checked(), [(GOOD,), (BAD,), (NAN,), (GOOD,), (strata.ones(2, 4),), (BAD.repeat(2, 1),)]),
    (asserting.notes, [(GOOD,), (GOOD * 20,), (FIVE,), (FIVE * 30,), (GOOD,)]),
    (asserting.catches, [(GOOD,), (BAD,), (FIVE,), (GOOD,)]),
    (asserting.loops, [(GOOD, 3), (BAD - 5, 2), (GOOD, 3), (FIVE, 2), (GOOD - 3.5, 4), (GOOD - 3.5, 1)]),
    (asserting.of_an_argument, [(TRUE, GOOD), (FALSE, GOOD), (TRUE, FIVE)]),
    (asserting.of_one_element, [(GOOD[0],), (BAD[1],), (GOOD[2],)]),
    (asserting.writes, [(GOOD,), (BAD,), (FIVE,)]),
    (asserting.gradient, [(GOOD,), (BAD,), (FIVE,)]),
]


def scenario_of(f, calls, **options):
    def scenario(n):
        compiled = n.compile(f, **options)
        for args in calls:
            asserting.NOTED.clear()
            n.call(compiled, *args)
            n.say(asserting.NOTED)

    return scenario


@pytest.mark.parametrize("f, calls", ONE_GRAPH, ids=lambda v: getattr(v, "__name__", ""))
def test_in_one_graph(f, calls):
    assert same(scenario_of(f, calls, fullgraph=True)) == []
    assert same(scenario_of(f, calls, dynamic=True)) == []


@pytest.mark.parametrize("f", [asserting.writes_argument, asserting.draws, asserting.of_many, asserting.reads])
def test_breaks(f):
    """What cannot be done twice, and flags of several elements."""

    def scenario(n):
        compiled = n.compile(f)
        for x in (GOOD, BAD, GOOD, BAD):
            strata.manual_seed(3)
            x = x.clone()
            n.call(compiled, x)
            n.say(x)

    assert same(scenario)


def test_a_backend_is_asked_once():
    """Also where the capture begins again, since its graph writes."""
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        return gm.forward

    compiled = strata.compile(asserting.writes_argument, backend=backend)
    assert compiled(GOOD.clone()).tolist() == [6.0, 9.0, 12.0, 15.0]
    assert len(seen) == 2  # before the assert and behind it
