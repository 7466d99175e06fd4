"""Graphs of every operator's samples, as they are recorded, and of compositions: their text parses back, they keep the spec."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

import test_record
import test_replay
from table import pytest, sampled, strata
from test_replay import CASES, GRADIENTS, at_word, copies, named

C = strata._C


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
