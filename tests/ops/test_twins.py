"""Functional twins: every operator of the table that writes has an operator that computes the same and writes nothing, or says
why not; those that are made of the operator that writes have its results, draws and errors, and stand in functional graphs."""

from __future__ import annotations

import re

import numpy as np
from table import ENTRIES, operator, pytest, strata
from test_replay import (
    ERRORS,
    GENERATOR,
    NUMBERS,
    Sample,
    at_word,
    copies,
    drawing,
    geometry,
    same_bits,
    samples,
    states,
    tensor_for,
    tensors_of,
)

C = strata._C
MADE = [e for e in ENTRIES if e.makes_twin]
DTYPES = ["float32", "float64", "bfloat16", "int64"]
# A graph has no value for what these write: the header of a tensor.
HEADERS = {"aten::resize_", "aten::resize_as_"}
# Why graphs have no twin of others.
OUTSIDE = {
    "aten::copy_": "an operator that converts is better; tests/ir/pass_test.cpp",
    "aten::zero_": "an operator that fills is better; tests/ir/pass_test.cpp",
    "aten::fill_diagonal_": "it is recorded as its parts, of which one is a view by places in memory",
}


def named(v):
    return v if isinstance(v, str) else v.schema.full


def written(entry, sample: Sample) -> list[int]:
    """The places, among a sample's tensors, of those that the operator writes, in the order of its arguments."""
    found, places = [], []
    for i, a in enumerate(entry.schema.args):
        value = sample.args[i] if i < len(sample.args) else sample.kwargs.get(a.name)
        n = len(tensors_of(value))
        if i < len(sample.args):
            places.append((a.written, n))
        else:
            assert not (a.written and n), f"{entry.schema.full}: what it writes is not given by place"
    at = 0
    for is_written, n in places:
        found += range(at, at + n) if is_written else []
        at += n
    return found


def drawn(entry, dtype_name: str):
    """A call that draws: the samples of the table draw what is certain."""
    random = np.random.default_rng(7)
    args, kwargs = [], {}
    for a in entry.schema.args:
        if a.type.startswith("Generator"):
            kwargs[a.name] = GENERATOR
        elif a.is_tensor:
            args.append(tensor_for(a.name, random, "float32" if a.name == "p" else dtype_name))
        elif a.name in NUMBERS:
            n = NUMBERS[a.name]
            args.append(n[a.type.rstrip("?")] if isinstance(n, dict) else n)
    return Sample(args, kwargs)


def calls(entry, dtype_name: str) -> list[Sample]:
    return samples(entry.schema.full, entry, dtype_name) + ([drawn(entry, dtype_name)] if drawing(entry) else [])


def outcome(op, sample: Sample, tensors):
    """Results and the generators' states of a call, or its error."""
    at_word(8)
    try:
        return tensors_of(sample.call(op, tensors)), states(), None
    except ERRORS as error:
        return [], states(), error


def words(error) -> str:
    """Of an error, without the operator that was called."""
    return re.sub(r" \(in \w+\)$", "", str(error))


def test_each_operator_that_writes_has_one_or_says_why_not():
    reasons = {e.schema.full: e.row.functional for e in ENTRIES if e.row.functional.startswith("none;")}
    without, found = {}, 0
    for name in strata.ops.names():
        if name.startswith(("aten::", "strata::")) and strata.ops.get(name)._schema.is_mutable:
            said = strata.ops.info(name)
            if said.twin is None:
                without[name] = said.functional
            else:
                assert not strata.ops.get(said.twin)._schema.is_mutable, name
                found += 1
    assert without == reasons
    assert found > 700


@pytest.mark.parametrize("entry", MADE, ids=named)
def test_what_it_is_called_and_takes(entry):
    twin = strata.ops.info(entry.schema.full).twin
    said = strata.ops.info(twin)
    assert (said.name, said.schema) == (entry.twin, entry.twin_schema().text())
    assert (said.kind, said.text, said.twin) == ("twin", entry.schema.full, None)
    assert (said.source, said.acts) == (strata.ops.info(entry.schema.full).source, strata.ops.info(entry.schema.full).acts)
    takes, gives = strata.ops.get(twin)._schema, strata.ops.get(entry.schema.full)._schema
    assert [a.name for a in takes.arguments] == [a.name for a in gives.arguments]


@pytest.mark.parametrize("dtype_name", DTYPES)
@pytest.mark.parametrize("entry", MADE, ids=named)
def test_gives_what_the_operator_writes(entry, dtype_name):
    op, twin, worked = operator(entry.schema), operator(entry.twin_schema()), 0
    for i, sample in enumerate(calls(entry, dtype_name)):
        where = f"{entry.twin} {dtype_name} sample {i}"
        own, given = copies(sample.tensors), copies(sample.tensors)
        _, after, error = outcome(op, sample, own)
        made, state, refused = outcome(twin, sample, given)
        assert type(error) is type(refused) and words(error) == words(refused), f"{where}: {refused!r}, in place {error!r}"
        assert all(map(same_bits, given, sample.tensors)), f"{where}: an operand was written"
        if error is not None:
            continue
        worked += 1
        assert state == after, f"{where}: the generator is elsewhere"
        values = [own[k] for k in written(entry, sample)]
        assert len(values) == len(made), where
        for value, result in zip(values, made, strict=True):
            if entry.schema.full in HEADERS:  # what it adds has no values
                assert geometry([value]) == geometry([result]), where
            else:
                assert same_bits(value, result), f"{where}: {result}, in place {value}"
    assert worked or dtype_name != "float32", f"{entry.twin}: no sample works"


def shapes(tensors):
    return [t.to("meta") for t in tensors]


@pytest.mark.parametrize("entry", [e for e in MADE if not e.reads & {"inside", "value"}], ids=named)
def test_over_shapes(entry):
    twin = operator(entry.twin_schema())
    for sample in calls(entry, "float32"):
        made, _, error = outcome(twin, sample, copies(sample.tensors))
        if error is None:
            assert geometry(tensors_of(sample.call(twin, shapes(sample.tensors)))) == geometry(made)


@pytest.mark.parametrize("entry", [e for e in MADE if e.schema.full not in HEADERS | OUTSIDE.keys()], ids=named)
def test_stands_in_functional_graphs(entry):
    """The graph of the operator in place, of arguments and of what was made before."""
    op, used = operator(entry.schema), 0
    for i, sample in enumerate(calls(entry, "float32")):
        if outcome(op, sample, copies(sample.tensors))[2] is not None:
            continue
        places = written(entry, sample)
        for fresh in (False, True):

            def f(*tensors, sample=sample, places=places, fresh=fresh):
                tensors = [t * 1 if fresh and k in places else t for k, t in enumerate(tensors)]
                sample.call(op, tensors)
                return [tensors[k] + 1 for k in places]

            own, given, planned = (copies(sample.tensors) for _ in range(3))
            graph, _ = C._record(f, copies(sample.tensors))
            functional, log = C._graph_pass(graph, "functional")
            text = f"{entry.schema.full} sample {i}: {log}{C._graph_text(graph)}{C._graph_text(functional)}"
            assert "stopped" not in log, text
            C._graph_verify(functional, True)
            used += entry.twin + "(" in C._graph_text(functional)
            at_word(8)
            wanted, after = f(*own), states()
            for values, run in ((given, lambda xs, g=functional: C._graph_run(g, xs)),
                                (planned, lambda xs, g=functional: C._plan_run(C._graph_compile(g, False), xs))):
                at_word(8)
                got = run(values)
                assert states() == after, text
                assert all(map(same_bits, [*wanted, *own], [*got, *values])), text
    assert used, f"{entry.twin} stands in no graph"


def test_a_list_is_not_taken_apart_where_its_tensors_are_one():
    """In place the second sees what the first one became; values would not."""
    def stopped(f, n):
        graph, _ = C._record(f, [strata.ones(3) for _ in range(n)])
        functional, log = C._graph_pass(graph, "functional")
        own, given = [strata.ones(3) for _ in range(n)], [strata.ones(3) for _ in range(n)]
        wanted, got = f(*own), C._graph_run(functional, given)
        assert all(map(same_bits, [*wanted, *own], [*got, *given]))
        return re.search("stopped at .*: (.*)", log)[1]

    def twice(a):
        strata._foreach_add_([a, a], 1)
        return [a]

    def read(a, b):
        strata._foreach_add_([a, b], [b, a])
        return [a, b]

    def view(a, b):
        strata._foreach_add_([a, b[1:]], 1)
        return [a, b]

    assert stopped(twice, 1) == "it writes several tensors, of which two are one"
    assert stopped(read, 2) == "it writes several tensors, and reads one of them"
    assert stopped(view, 2) == "it writes several tensors, of which one is a view"


def test_derivatives_are_those_in_place():
    """Random numbers hang on nothing that was there; a number is added straight; who wrote no derivative says so."""
    for name, args in (("uniform", ()), ("normal_functional", ()), ("log_normal", ()), ("exponential", ()), ("cauchy", ()),
                       ("geometric", (0.5,)), ("random", ())):
        x = strata.randn(3, requires_grad=True)
        getattr(strata.ops.aten, name).default(x * 2, *args).sum().backward()
        assert x.grad.tolist() == [0, 0, 0], name
    a = strata.randn(3, requires_grad=True)
    results = []
    for f in (lambda t: strata.ops.aten._foreach_mul.Scalar([t], 3.0)[0],
              lambda t: [u := t.clone(), strata._foreach_mul_([u], 3.0)][0]):
        try:
            results.append(strata.autograd.grad(f(a).sum(), a)[0].tolist())
        except ERRORS as error:
            results.append(type(error))
    assert results[0] == results[1]
