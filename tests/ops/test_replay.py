"""Every operator is recorded below autograd with inputs A and replayed with inputs B of the same geometry, from another place
of the generator's stream: results, gradients and written inputs have the bits of an eager run on B. What cannot be recorded,
since values of tensors reach the host or sizes are data, says so in the table (`reads`, `size`) and raises. Of each operator some
dtypes, which the seed chooses; all with STRATA_TEST_ALL=1."""

from __future__ import annotations

import re
import zlib
from collections import Counter

import numpy as np
from table import (
    ENTRIES,
    SAMPLES,
    TESTED,
    Maker,
    bits,
    convert,
    dtype,
    flattened,
    operator,
    pytest,
    sampled,
    strata,
    tensor,
)

from gen import autograd_cpp

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
UNRECORDABLE = "are recorded, and a recording is replayed|cannot be recorded: the size of its result"
# Why results are not compared.
UNDEFINED = {
    "aten::resize_": "memory that it adds has no values",
    "aten::resize_as_": "memory that it adds has no values",
}


# What launches cannot say.
HEADERS = "it gives an argument of the graph other sizes or memory|it changes how much memory a tensor has"


class Sample:
    """One call of an operator: its tensors in order, and how to call it with others."""

    def __init__(self, args, kwargs, tensors=None):
        self.args, self.kwargs = args, kwargs
        self.tensors = tensors or [v for v in flattened([list(args), list(kwargs.values())]) if isinstance(v, strata.Tensor)]

    def call(self, op, tensors):
        rest = iter(tensors)

        def put(v):
            if isinstance(v, strata.Tensor):
                return next(rest)
            return type(v)(put(x) for x in v) if isinstance(v, (list, tuple)) else v

        args = [put(v) for v in self.args]
        return op(*args, **{k: put(v) for k, v in self.kwargs.items()})


def samples(name: str, entry, dtype_name: str) -> list[Sample]:
    """The samples of an entry, with values that the name decides; in float32 also with tensors whose dims lie in memory in
    the opposite order."""
    made = SAMPLES[entry.row.samples](Maker(name, dtype_name))
    plain = [Sample(convert(c.args, tensor, dtype), {k: convert(v, tensor, dtype) for k, v in c.kwargs.items()}) for c in made]
    if dtype_name != "float32":
        return plain
    return plain + [Sample(s.args, s.kwargs, [reversed_dims(t) for t in s.tensors]) for s in plain if any(t.dim() > 1 for t in s.tensors)]


def reversed_dims(t):
    order = list(range(t.dim()))[::-1]
    return t.permute(order).contiguous().permute(order)


def geometry(tensors):
    return [(t.dtype, tuple(t.shape), t.stride()) for t in tensors]


def turned(t):
    """Its elements in the opposite order."""
    return strata.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t.detach().flatten().flip(0).reshape(t.shape))


def copies(tensors):
    return [strata.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t.detach()) for t in tensors]


def others(sample: Sample, counterpart: Sample | None):
    """Values for a second run, best first: of a counterpart, the same in another order, the same."""
    if counterpart is not None and geometry(counterpart.tensors) == geometry(sample.tensors):
        yield counterpart.tensors
    yield [turned(t) for t in sample.tensors]
    yield sample.tensors


def tensors_of(result) -> list:
    return [r for r in flattened([result]) if isinstance(r, strata.Tensor)]


def same_bits(a, b) -> bool:
    if (a is None) != (b is None):
        return False
    if a is None:
        return True
    if (a.dtype, tuple(a.shape), a.stride()) != (b.dtype, tuple(b.shape), b.stride()):
        return False
    x, y = (t.detach().contiguous() for t in (a, b))
    if x.is_complex():
        x, y = strata.view_as_real(x), strata.view_as_real(y)
    if x.dtype == strata.bfloat16:
        x, y = x.float(), y.float()
    return bits(x.numpy()) == bits(y.numpy())


GENERATOR = strata.Generator()


def at_word(seed: int):
    """Another stream, and another place of it."""
    for g in (strata.default_generator, GENERATOR):
        g.manual_seed(seed)
        strata.rand(seed, generator=g)


def states() -> list:
    return [g.get_state().tolist() for g in (strata.default_generator, GENERATOR)]


def check(where: str, f, first, second, compared: bool = True, drawn: bool = False) -> None:
    """f(*tensors) gives a list of tensors; recorded with the first ones and replayed with the second. `drawn`: they are
    random, and differ."""
    at_word(3)
    tape, recorded = strata._C._record(f, copies(first))
    text = f"{where}\n{strata._C._graph_text(tape)}"
    assert not strata._C._graph_captured(tape), f"used what no recorded operator made: {text}"
    wanted = copies(second)
    at_word(8)
    expected = f(*wanted)
    after = states()
    # As operators, and as the launches that these would make.
    ways = [("graph", lambda xs: strata._C._graph_run(tape, xs))]
    try:
        plan = strata._C._graph_compile(tape, False)
        ways.append(("plan", lambda xs: strata._C._plan_run(plan, xs)))
    except NotImplementedError as e:
        assert re.search(HEADERS, str(e)), text
    for way, run in ways:
        given = copies(second)
        at_word(8)
        got = run(given)
        said = f"{way}: {text}" + (strata._C._plan_text(plan, "launches") if way == "plan" else "")
        assert states() == after, f"the generator is elsewhere afterwards: {said}"
        assert not drawn or not all(map(same_bits, recorded, got)), f"nothing was drawn: {said}"
        assert len(expected) == len(got), said
        for i, (a, b) in enumerate(zip([*expected, *wanted], [*got, *given], strict=True)):
            what = f"result {i}" if i < len(got) else f"input {i - len(got)} afterwards"
            if compared:
                assert same_bits(a, b), f"{what} differs: {said}"
            else:
                assert geometry([a]) == geometry([b]), f"{what} differs: {said}"


def forms(entry, sample: Sample):
    """(kind, schema, a sample of that form) of the forms that take the sample."""
    for kind, schema in entry.forms():
        if kind != "out":
            yield kind, schema, sample
            continue
        try:
            results = tensors_of(sample.call(operator(entry.schema), copies(sample.tensors)))
        except ERRORS:
            continue
        names = [a.name for a in schema.args if a.written]
        if schema.args[-1].is_tensors:
            yield kind, schema, Sample(sample.args, {**sample.kwargs, names[0]: results}, sample.tensors + results)
        elif len(results) == len(names):
            targets = {n: strata.zeros_like(r.detach()) for n, r in zip(names, results, strict=True)}
            yield kind, schema, Sample(sample.args, {**sample.kwargs, **targets}, sample.tensors + [*targets.values()])


def always_refused(entry) -> bool:
    return "value" in entry.reads or entry.row.size == "data"


def works(f, tensors) -> bool:
    try:
        f(*copies(tensors))
    except ERRORS:
        return False
    return True


def refused(where: str, entry, f, tensors, allowed: bool) -> bool:
    """Whether recording raises, which the table must announce."""
    try:
        at_word(3)
        strata._C._record(f, copies(tensors))
    except RuntimeError as error:
        if "recorded" not in str(error):
            raise
        assert re.search(UNRECORDABLE, str(error)), f"{where}: {error}"
        assert allowed, f"{where}: reads values, and the table does not say so: {error}"
        return True
    return False


def forward(entry, dtype_name: str, count: Counter) -> None:
    name = entry.schema.full
    counterparts = samples(name + "/B", entry, dtype_name)
    for i, base in enumerate(samples(name, entry, dtype_name)):
        for kind, schema, sample in forms(entry, base):
            op, where = operator(schema), f"{schema.full} {dtype_name} sample {i}"

            def f(*tensors, op=op, sample=sample):
                return tensors_of(sample.call(op, tensors))

            if not works(f, sample.tensors):
                continue
            if refused(where, entry, f, sample.tensors, always_refused(entry) or bool(entry.row.size)):
                count["refused"] += 1
                continue
            assert not always_refused(entry), f"{where}: the table says that it cannot be recorded"
            other = counterparts[i] if i < len(counterparts) and kind != "out" else None
            second = next(x for x in others(sample, other) if works(f, x))
            check(where, f, sample.tensors, second, entry.kind != "allocate" and name not in UNDEFINED)
            count[kind] += 1


def recorded_inputs(entry, op, sample: Sample, inplace: bool):
    """Places of the tensors that a derivative is known for: all floating ones, or those that the table names."""
    floats = [k for k, t in enumerate(sample.tensors) if t.is_floating_point() or t.is_complex()]
    named = {a.name for a in autograd_cpp.differentiable(entry)}
    by_name = []
    at = 0
    for i, a in enumerate(entry.schema.args):
        value = sample.args[i] if i < len(sample.args) else sample.kwargs.get(a.name)
        n = len(tensors_of(value))
        by_name += [k for k in range(at, at + n) if a.name in named and k in floats]
        at += n
    for places in (floats, by_name):
        if not places:
            continue
        tensors = copies(sample.tensors)
        for k in places:
            tensors[k].requires_grad_()
        try:
            results = tensors_of(sample.call(op, [tensors[0].clone(), *tensors[1:]] if inplace else tensors))
        except ERRORS:
            continue
        outs = [j for j, r in enumerate(results) if r.requires_grad]
        if outs:
            return places, outs, results
    return None


def square(t):
    return (strata.view_as_real(t) if t.is_complex() else t).pow(2).sum()


def gradient(entry, dtype_name: str, count: Counter, twice: bool = False) -> None:
    """The first derivatives; with `twice` also those of their squares."""
    name = entry.schema.full
    counterparts = samples(name + "/B", entry, dtype_name)
    for i, sample in enumerate(samples(name, entry, dtype_name)):
        for kind, schema in entry.forms():
            if kind == "out" or not sample.tensors:
                continue
            inplace = schema.args[0].written
            op, where = operator(schema), f"gradient of {schema.full} {dtype_name} sample {i}"
            found = recorded_inputs(entry, op, sample, inplace)
            if found is None:
                continue
            places, outs, results = found
            random = np.random.default_rng(zlib.crc32(where.encode()))
            weights = [weight(results[j], random) for j in outs]

            def f(*tensors, op=op, sample=sample, places=places, outs=outs, inplace=inplace):
                given, by = list(tensors[:len(sample.tensors)]), tensors[len(sample.tensors):]
                leaves = [given[k].requires_grad_() for k in places]
                if inplace:
                    given[0] = given[0].clone()
                results = tensors_of(sample.call(op, given))
                slopes = strata.autograd.grad([results[j] for j in outs], leaves, list(by), allow_unused=True, create_graph=twice)
                squares = [square(s) for s in slopes if s is not None and s.requires_grad]
                if squares:
                    slopes += strata.autograd.grad(squares, leaves, allow_unused=True)
                for leaf in leaves:
                    leaf.requires_grad_(False)
                return [None if r is None else r.detach() for r in [*results, *slopes]]

            first = [*sample.tensors, *weights]
            if not works(f, first):
                continue
            if refused(where, entry, f, first, "gradient" in entry.reads or always_refused(entry) or bool(entry.row.size)):
                count["gradient refused"] += 1
                continue
            other = counterparts[i] if i < len(counterparts) else None
            second = next(y for y in ([*x, *map(turned, weights)] for x in others(sample, other)) if works(f, y))
            check(where, f, first, second, name not in UNDEFINED)
            count[("second derivative" if twice else "gradient") + (" in place" if inplace else "")] += 1


def weight(t, random):
    values = strata.tensor(random.uniform(0.5, 1, tuple(t.shape)))
    return values.to(t.dtype)


def cases(always: list[str], others: list[str], keep: int) -> list:
    return [(e, d) for e in ENTRIES for d in [*always, *sampled(others, keep, e.schema.full)]]


CASES = cases(["float32"], TESTED[1:], 3)
GRADIENTS = cases(["float32"], ["float64", "bfloat16", "complex64"], 1)


def named(v):
    return v if isinstance(v, str) else v.schema.full


@pytest.mark.parametrize(("entry", "dtype_name"), CASES, ids=named)
def test_forward(entry, dtype_name):
    forward(entry, dtype_name, Counter())


@pytest.mark.parametrize(("entry", "dtype_name"), GRADIENTS, ids=named)
def test_gradient(entry, dtype_name):
    gradient(entry, dtype_name, Counter())


@pytest.mark.parametrize(("entry", "dtype_name"), cases([], ["float64", "complex64"], 1), ids=named)
def test_second_derivative(entry, dtype_name):
    gradient(entry, dtype_name, Counter(), twice=True)


def form_of(sample: Sample):
    """What a recording of the sample takes for granted."""

    def shown(v):
        if isinstance(v, strata.Tensor):
            return "tensor"
        return [shown(x) for x in v] if isinstance(v, (list, tuple)) else repr(v)

    return repr([shown(v) for v in [sample.args, *sorted(sample.kwargs), *sample.kwargs.values()]] + geometry(sample.tensors))


def refusable(tensors):
    """Other values, of which some operators refuse some."""
    yield tensors
    for value in (0, -1, 100, float("nan")):
        yield [t if t.dtype == strata.bool or (value < 0 and t.dtype == strata.uint8) or (value != value and not t.is_floating_point())
               else strata.full_like(t, value) for t in tensors]


@pytest.mark.parametrize(("entry", "dtype_name"), cases([], ["float32", "int64"], 1), ids=named)
def test_errors_of_values_are_replayed(entry, dtype_name):
    op, tapes = operator(entry.schema), {}
    found = samples(entry.schema.full, entry, dtype_name)
    for sample in found:
        def f(*tensors, sample=sample):
            return tensors_of(sample.call(op, tensors))

        key = form_of(sample)
        if key not in tapes and works(f, sample.tensors):
            if not refused(entry.schema.full, entry, f, sample.tensors, True):
                tapes[key] = f, strata._C._record(f, copies(sample.tensors))[0]
    for sample in found:
        if form_of(sample) not in tapes:
            continue
        f, tape = tapes[form_of(sample)]
        for tensors in refusable(sample.tensors):
            try:
                f(*copies(tensors))
            except ERRORS as error:
                with pytest.raises(type(error)):
                    strata._C._graph_run(tape, copies(tensors))


# Samples of the table draw what is certain; these do not.
NUMBERS = {"size": [4, 5], "n": 20, "high": 30, "low": -3, "to": 9, "p": 0.4, "num_samples": 3, "train": True, "lambd": 1.5,
           "from": {"int": 2, "float": 0.5}, "mean": 0.25, "std": 1.5, "sigma": 2.0, "median": 0.5}


def tensor_for(name: str, random, dtype_name: str):
    if name == "count":
        return strata.full((4, 5), 9).to(getattr(strata, dtype_name))
    numbers = random.integers(1, 9, (4, 5)) if dtype_name == "int64" else random.uniform(0.1, 0.9, (4, 5))
    return strata.tensor(numbers).to(getattr(strata, dtype_name))


def drawing(entry) -> bool:
    words = {a.type.rstrip("?") for a in entry.schema.args}
    return "Generator" in words and not entry.schema.name.endswith("generator_state") or \
        entry.schema.full in ("aten::dropout", "aten::dropout_", "aten::native_dropout", "aten::feature_dropout", "aten::alpha_dropout",
                              "aten::rand", "aten::randn", "aten::randint", "aten::randint.low", "aten::randperm", "aten::rand_like",
                              "aten::randn_like", "aten::randint_like", "aten::randint_like.low_dtype")


def draws(entry, dtype_name: str, count: Counter) -> None:
    random = np.random.default_rng(7)

    def arguments(schema):
        for a in schema.args:
            if a.type.startswith("Generator"):
                yield a, GENERATOR
            elif a.is_tensor and not (a.written and a.kwonly):
                yield a, tensor_for(a.name, random, dtype_name)
            elif a.name in NUMBERS:
                yield a, NUMBERS[a.name][a.type.rstrip("?")] if isinstance(NUMBERS[a.name], dict) else NUMBERS[a.name]

    base = list(arguments(entry.schema))
    sample = Sample([v for a, v in base if not a.kwonly], {a.name: v for a, v in base if a.kwonly})
    ran = 0
    for kind, schema, s in forms(entry, sample):
        op = operator(schema)

        def f(*tensors, op=op, s=s):
            return tensors_of(s.call(op, tensors))

        if works(f, s.tensors):
            check(f"{schema.full} {dtype_name}", f, s.tensors, [turned(t) for t in s.tensors], drawn=True)
            ran += 1
            count["drawn " + kind] += 1
    assert ran or dtype_name != "float32", f"{entry.schema.full}: no call of it works"


@pytest.mark.parametrize("dtype_name", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("entry", [e for e in ENTRIES if drawing(e)], ids=named)
def test_draws(entry, dtype_name):
    draws(entry, dtype_name, Counter())
