"""Shape-only execution: on tensors without memory, of the CPU or of the device meta, every operator gives the shape, dtype and
strides of the real result or its type of error, and touches no data. skips.json lists the operators whose sizes depend on values
(meta), and those that refuse values (values), which only a real run can."""

from __future__ import annotations

from table import ENTRIES, SKIPS, TESTED, calls, operator, pytest, skip_reason, strata

KINDS = ("float32", "bfloat16", "int64", "bool", "complex64")
TAKERS = [e for e in ENTRIES if any(a.is_tensor or a.is_tensors for a in e.schema.args)]
CASES = [(e, d) for e in TAKERS if not skip_reason(e, "meta") for d in KINDS]


def shape_only(value):
    if isinstance(value, strata.Tensor):
        return strata._C._shape_only(value)
    if isinstance(value, (list, tuple)):
        return type(value)(shape_only(v) for v in value)
    return value


def on_meta(value):
    """The same on the device that has no allocator."""
    if isinstance(value, strata.Tensor):
        return value.to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)(on_meta(v) for v in value)
    return value


def described(result):
    if isinstance(result, strata.Tensor):
        return tuple(result.shape), str(result.dtype), tuple(result.stride())
    if isinstance(result, (list, tuple)):
        return [described(r) for r in result]
    return type(result).__name__


def tensors(value):
    if isinstance(value, strata.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(v)


def outcome(op, args, kwargs):
    try:
        return op(*args, **kwargs), None
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        return None, error


@pytest.mark.parametrize("without", (shape_only, on_meta))
@pytest.mark.parametrize("entry, dtype", CASES, ids=lambda x: x if isinstance(x, str) else x.schema.full)
def test_meta(entry, dtype, without):
    if without is on_meta and entry.schema.full == "aten::to.device":
        pytest.skip("its samples name a device, to which nothing goes from meta")
    op = operator(entry.schema)
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        meta_args, meta_kwargs = without(args), {k: without(v) for k, v in kwargs.items()}
        real, error = outcome(op, args, kwargs)
        made, refused = outcome(op, meta_args, meta_kwargs)
        where = f"{entry.schema.full} {dtype} sample {i}"
        if error is not None:
            excused = refused is None and skip_reason(entry, "values")
            assert excused or type(refused) is type(error), f"{where}: {error!r}, but on meta tensors {refused!r}"
            continue
        assert refused is None, f"{where}: on meta tensors {refused!r}"
        assert described(made) == described(real), f"{where}: on meta tensors {described(made)}, really {described(real)}"
        assert all(t.is_meta for t in tensors(made)), f"{where}: a result is not shape-only"



@pytest.mark.parametrize("name", SKIPS["values"])
def test_values_are_refused(name):
    """An operator in the list has a sample whose values it refuses."""
    entry = next(e for e in TAKERS if e.schema.full == name)
    op = operator(entry.schema)
    assert any(outcome(op, args, kwargs)[1] and not outcome(op, shape_only(args), {k: shape_only(v) for k, v in kwargs.items()})[1]
               for d in TESTED for args, kwargs in calls(entry, d))
