"""Graphs of every operator's samples, as they are recorded, and of compositions: their text parses back, they keep the spec, and
each pass keeps what a run on other inputs gives: bits of results and of written inputs, which of them share memory, the state of the
generators."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

import test_record
import test_replay
from table import pytest, sampled, strata
from test_replay import CASES, GRADIENTS, at_word, copies, geometry, named, same_bits, states

C = strata._C


def shared(tensors) -> list:
    """Which of the tensors begin in which memory: None, or the place of the first one in the same storage, and the offset."""
    places = {}
    return [None if t is None else (places.setdefault(t.untyped_storage().data_ptr(), i), t.storage_offset()) for i, t in enumerate(tensors)]


def result_of(graph, tensors):
    at_word(8)
    given = copies(tensors)
    results = C._graph_run(graph, given)
    return [*results, *given], len(results), states()


def same_results(where, a, b, compared=True):
    """Of two runs."""
    (one, count, state), (two, _, after) = a, b
    assert state == after, f"{where}: the generator is elsewhere afterwards"
    assert shared(one) == shared(two), f"{where}: other tensors share memory"
    for i, (x, y) in enumerate(zip(one, two, strict=True)):
        what = f"{where}: {f'result {i}' if i < count else f'input {i - count} afterwards'} differs"
        assert same_bits(x, y) if compared else geometry([x]) == geometry([y]), what


PASSES = ["fold", "simplify", "common", "dead", "functional"]
STOPPED = Counter()  # operators that stopped functionalisation


def keeps_results(graph, second, compared=True) -> None:
    wanted = result_of(graph, second)
    for names in [[p] for p in PASSES] + [["functional", "fold", "simplify", "common", "dead"]]:
        changed, before = graph, states()
        for name in names:
            changed, log = C._graph_pass(changed, name)
            stopped = re.search("stopped at node \\d+, ([^ ]*)", log)
            if stopped:
                STOPPED[stopped[1].rstrip(":")] += 1
            where = f"{'+'.join(names)}\n{C._graph_text(graph)}{log}{C._graph_text(changed)}"
            C._graph_verify(changed, name == "functional" and not stopped)
        assert states() == before, f"{where}: the pass draws random numbers"
        reads_back(changed)
        same_results(where, wanted, result_of(changed, second), compared)


def reads_back(graph) -> None:
    text = C._graph_text(graph)
    if "=generator" in text:  # which has no text
        with pytest.raises(ValueError, match="has no text"):
            C._graph_parse(text, C._graph_captured(graph))
        return
    assert C._graph_text(C._graph_parse(text, C._graph_captured(graph))) == text


def check(where, f, first, second, compared=True, drawn=False) -> None:
    """In the place of test_replay's: what holds of the graph of f."""
    at_word(3)
    graph, _ = C._record(f, copies(first))
    C._graph_verify(graph, False)
    reads_back(graph)
    keeps_results(graph, second, compared)


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.setattr(test_replay, "check", check)
    monkeypatch.setattr(test_record, "check", check)


@pytest.mark.parametrize(("entry", "dtype_name"), sampled(CASES, 500), ids=named)
def test_operators(entry, dtype_name):
    test_replay.forward(entry, dtype_name, Counter())


@pytest.mark.parametrize(("entry", "dtype_name"), sampled(GRADIENTS, 150), ids=named)
def test_gradients(entry, dtype_name):
    test_replay.gradient(entry, dtype_name, Counter())


@pytest.mark.parametrize("f", [test_record.written_views, test_record.refreshed_views, test_record.headers, test_record.with_hooks],
                         ids=lambda f: f.__name__)
def test_compositions(f):
    test_record.test_autograd(f)


@pytest.mark.parametrize("name", test_record.MODULES)
def test_modules(name):
    test_record.test_modules(name)


@pytest.mark.parametrize("name", test_record.OPTIMISERS)
def test_optimisers(name):
    test_record.test_optimiser_steps(name)


def test_random_streams():
    test_record.test_random_streams()
    test_record.test_attention_drops_weights()
    test_record.test_checkpoints_draw_the_same_twice()
