"""Shape-only execution: on tensors without memory every operator gives the shape, dtype and strides of the real result,
and touches no data. Operators whose sizes depend on values are listed with that reason in skips.json."""

from __future__ import annotations

from table import ENTRIES, SAMPLES, calls, operator, pytest, sampled, skip_reason, strata

KINDS = ("float32", "bfloat16", "int64", "bool")
TAKERS = [e for e in ENTRIES if any(a.is_tensor or a.is_tensors for a in e.schema.args)]
CASES = [(e, d) for e in TAKERS if e.raw.get("samples") in SAMPLES and not skip_reason(e, "meta") for d in KINDS]


def shape_only(value):
    if isinstance(value, strata.Tensor):
        return strata._C._shape_only(value)
    if isinstance(value, (list, tuple)):
        return type(value)(shape_only(v) for v in value)
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


@pytest.mark.parametrize("entry, dtype", sampled(CASES, 700), ids=lambda x: x if isinstance(x, str) else x.schema.full)
def test_meta(entry, dtype):
    op = operator(entry.schema)
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        meta_args, meta_kwargs = shape_only(args), {k: shape_only(v) for k, v in kwargs.items()}
        real, error = outcome(op, args, kwargs)
        made, refused = outcome(op, meta_args, meta_kwargs)
        where = f"{entry.schema.full} {dtype} sample {i}"
        if error is not None:
            assert refused is not None or depends_on_values(error), f"{where}: {error!r}, but not on meta tensors"
            continue
        assert refused is None, f"{where}: on meta tensors {refused!r}"
        assert described(made) == described(real), f"{where}: on meta tensors {described(made)}, really {described(real)}"
        assert all(t.is_meta for t in tensors(made)), f"{where}: a result is not shape-only"


def depends_on_values(error: Exception) -> bool:
    """Errors that only the values can cause."""
    return any(word in str(error) for word in ("out of range", "out of bounds", "singular", "not positive", "probability",
                                               "expects", "between 0", "converge", "Expected", "Number of elements", "range", "zero", "overflow"))
