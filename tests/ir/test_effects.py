"""What passes assume of operators holds for all their samples: what has no effect neither draws, nor writes, nor raises by values;
results that the schema does not mark share no memory."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

import test_replay
from table import ENTRIES, operator, pytest, sampled, strata
from test_replay import (
    ERRORS,
    at_word,
    copies,
    drawing,
    named,
    refusable,
    same_bits,
    samples,
    states,
    tensors_of,
    works,
)

C = strata._C


def dead(f, tensors):
    """The graph of f without its results, after dead code is gone."""
    at_word(3)
    graph, _ = C._record(lambda *given: f(*given) and [], copies(tensors))
    return C._graph_pass(graph, "dead")[0]


def keeps_effects(where, f, first, second, compared=True, drawn=False) -> None:
    graph, wanted, given = dead(f, first), copies(second), copies(second)
    at_word(8)
    f(*wanted)
    after = states()
    at_word(8)
    C._graph_run(graph, given)
    assert states() == after, f"{where}: the generator is elsewhere afterwards"
    assert not compared or all(map(same_bits, wanted, given)), f"{where}: inputs were written otherwise"


@pytest.mark.parametrize(("entry", "dtype_name"), sampled([(e, d) for e in ENTRIES for d in ("float32", "int64")], 150), ids=named)
def test_writes(entry, dtype_name, monkeypatch):
    monkeypatch.setattr(test_replay, "check", keeps_effects)
    test_replay.forward(entry, dtype_name, Counter())


@pytest.mark.parametrize("entry", [e for e in ENTRIES if drawing(e)], ids=named)
def test_draws(entry, monkeypatch):
    monkeypatch.setattr(test_replay, "check", keeps_effects)
    test_replay.draws(entry, "float32", Counter())


@pytest.mark.parametrize(("entry", "dtype_name"), sampled([(e, d) for e in ENTRIES for d in ("float32", "int64")], 200), ids=named)
def test_errors_of_values(entry, dtype_name):
    op = operator(entry.schema)
    for sample in samples(entry.schema.full, entry, dtype_name):
        def f(*tensors, sample=sample):
            return tensors_of(sample.call(op, tensors))

        if not works(f, sample.tensors) or test_replay.refused(entry.schema.full, entry, f, sample.tensors, True):
            continue
        graph = dead(f, sample.tensors)
        for tensors in refusable(sample.tensors):
            try:
                f(*copies(tensors))
            except ERRORS as error:
                with pytest.raises(type(error)):
                    C._graph_run(graph, copies(tensors))


PLAIN = [e for e in ENTRIES if e.kind != "composite" and e.row.body != "header" and not any("(" in r.text() for r in e.schema.returns)]


@pytest.mark.parametrize("entry", sampled(PLAIN, 150), ids=named)
def test_results_share_no_memory(entry):
    op = operator(entry.schema)
    for sample in samples(entry.schema.full, entry, "float32"):
        given = copies(sample.tensors)
        try:
            results = tensors_of(sample.call(op, given))
        except ERRORS:
            continue
        places = [[t.untyped_storage().data_ptr() for t in ts if t.numel()] for ts in (given, results)]
        assert not set(places[0]) & set(places[1]), entry.schema.full
        if not any(r.is_tensors for r in entry.schema.returns):  # of a list they may lie in one
            assert len(set(places[1])) == len(places[1]), entry.schema.full
