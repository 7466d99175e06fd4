"""In-place and out= forms of shape-only tensors: the shapes, dtypes and strides of the real results, or their type of error."""

from __future__ import annotations

from table import calls, operator, pytest, skip_reason, strata
from test_meta import CASES, described, on_meta, outcome, shape_only, tensors

INPLACE = [(e, d) for e, d in CASES if e.inplace]
OUT = [(e, d) for e, d in CASES if e.out and all(r.type == "Tensor" for r in e.schema.returns)]


def compare(entry, where, real, made):
    """Outcomes of a call: its result and its error."""
    (result, error), (shapes, refused) = real, made
    if error is not None:
        excused = refused is None and skip_reason(entry, "values")
        assert excused or type(refused) is type(error), f"{where}: {error!r}, but on meta tensors {refused!r}"
        return
    assert refused is None, f"{where}: on meta tensors {refused!r}"
    assert described(shapes) == described(result), f"{where}: on meta tensors {described(shapes)}, really {described(result)}"


def given(made):
    """Kinds of tensors for out=: empty, fitting, and of a dtype that most results do not convert to."""
    yield [strata.empty(0, dtype=t.dtype) for t in made]
    yield [strata.empty_like(t) for t in made]
    yield [strata.empty(t.shape, dtype=strata.uint8) for t in made]


@pytest.mark.parametrize("without", (shape_only, on_meta))
@pytest.mark.parametrize("entry, dtype", INPLACE, ids=lambda x: x if isinstance(x, str) else x.schema.full)
def test_inplace_on_meta(entry, dtype, without):
    op = operator(entry.inplace_schema())
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        made = outcome(op, without(list(args)), {k: without(v) for k, v in kwargs.items()})
        own = args[0].clone() if isinstance(args[0], strata.Tensor) else args[0]
        compare(entry, f"sample {i}", outcome(op, [own, *args[1:]], kwargs), made)


@pytest.mark.parametrize("without", (shape_only, on_meta))
@pytest.mark.parametrize("entry, dtype", OUT, ids=lambda x: x if isinstance(x, str) else x.schema.full)
def test_out_on_meta(entry, dtype, without):
    schema = entry.out_schema()
    op, names = operator(schema), [a.name for a in schema.args if a.written]
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        result, error = outcome(operator(entry.schema), args, kwargs)
        if error is not None:
            continue
        for outs in given(list(tensors(result))):
            named = kwargs | dict(zip(names, outs, strict=True))
            made = outcome(op, without(list(args)), {k: without(v) for k, v in named.items()})
            compare(entry, f"sample {i}, out= of {outs[0].dtype}", outcome(op, args, named), made)
