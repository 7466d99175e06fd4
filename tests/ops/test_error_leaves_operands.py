"""On the CPU an error leaves operands as they were: a kernel that may find a zero divisor or a bad index writes nothing that
is anybody's before it has looked. Every operator of the table that can fail by its values, in place and with out=."""

from __future__ import annotations

import numpy as np
from kit import flattened
from table import ENTRIES, calls, operator, pytest, strata

ERRORS = (RuntimeError, ValueError, TypeError, IndexError)
SIZES = [(5,), (40,), (3, 7), (70_000,)]


def divisions():
    """Operators whose last operand may be a divisor: those that raise ZeroDivisionError for it."""
    for e in ENTRIES:
        tensors = [a.name for a in e.schema.args]
        if tensors[:2] not in (["self", "other"], ["input", "other"]) or e.kind not in ("pointwise", "cpu", "composite"):
            continue
        x = strata.ones(2, dtype=strata.int64)
        other = x * 0 if e.schema.args[1].type == "Tensor" else 0
        more = {"rounding_mode": "floor"} if any(a.name == "rounding_mode" for a in e.schema.args) else {}
        if e.schema.args[0].type != "Tensor":
            continue
        try:
            operator(e.schema)(x, other, **more)
        except RuntimeError as error:
            if "ZeroDivision" in str(error):
                yield e, more
        except ERRORS:
            pass


DIVISIONS = list(divisions())


@pytest.mark.parametrize(("entry", "more"), DIVISIONS, ids=[e.schema.full for e, _ in DIVISIONS])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int16"])
def test_a_zero_divisor(entry, more, dtype):
    for size in SIZES:
        values = strata.tensor(np.arange(1, np.prod(size) + 1).reshape(size) % 100).to(getattr(strata, dtype))
        divisor = strata.ones_like(values) * 3
        divisor.view(-1)[-1] = 0
        other = divisor if entry.schema.args[1].type == "Tensor" else 0
        for strided in (False, True):
            def fresh(v=values, strided=strided):
                return strata.stack([v, v], -1)[..., 0] if strided else v.clone()

            if entry.inplace:
                x = fresh()
                with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                    operator(entry.inplace_schema())(x, other, **more)
                assert strata.equal(x, values), "self was written"
            if entry.out:
                op = operator(entry.out_schema())
                for target in ("fresh", "self", "other", "empty"):
                    x = fresh()
                    y = other.clone() if isinstance(other, strata.Tensor) else other
                    out = {"fresh": strata.full_like(values, 7), "self": x, "other": y,
                           "empty": strata.empty(0, dtype=values.dtype)}[target]
                    if not isinstance(out, strata.Tensor):
                        continue
                    before = out.clone()
                    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                        op(x, y, **more, out=out)
                    assert out.shape == before.shape and strata.equal(out, before), f"out= ({target}) was written"
                    assert strata.equal(x, values)


def test_the_table_has_divisions():
    names = {e.schema.name for e, _ in DIVISIONS}
    assert names >= {"floor_divide", "remainder", "fmod", "div"}, names


def indexed():
    """Forms that write, with an operand named as an index."""
    for e in ENTRIES:
        if not any(a.name in ("index", "indices", "offsets", "target") for a in e.schema.args):
            continue
        for kind, s in e.operators():
            if any(a.written and a.type == "Tensor" for a in s.args):
                yield e, kind, s


INDEXED = list(indexed())


def spoilt(value):
    """The same indices, a far one at the end."""
    if isinstance(value, (list, tuple)):
        parts = [spoilt(v) for v in value]
        return type(value)(parts) if any(p is not None for p in parts) else None
    if not isinstance(value, strata.Tensor) or value.dtype not in (strata.int64, strata.int32) or value.numel() == 0:
        return None
    bad = value.clone().contiguous()
    bad.view(-1)[-1] = 1 << 30
    return bad


@pytest.mark.parametrize(("entry", "kind", "schema"), INDEXED, ids=[s.full for _, _, s in INDEXED])
def test_an_index_out_of_range(entry, kind, schema):
    op = operator(schema)
    tried = False
    for dtype in ("float32", "int64", "bfloat16"):
        for args, kwargs in calls(entry, dtype):
            at = next((i for i, a in enumerate(schema.args[:len(args)]) if a.name in ("index", "indices", "offsets", "target")), None)
            bad = spoilt(args[at]) if at is not None else None
            if bad is None:
                continue
            outs = {}
            if kind == "out":
                try:
                    result = operator(entry.schema)(*args, **kwargs)
                except ERRORS:
                    continue
                results = result if isinstance(result, (list, tuple)) else [result]
                written = [a for a in schema.args if a.written]
                outs = {a.name: strata.full_like(r, 3) for a, r in zip(written, results, strict=True)}
            new = [*args[:at], bad, *args[at + 1:]]
            operands = [a for a in [*new, *outs.values()] if isinstance(a, strata.Tensor)]
            before = [a.clone() for a in operands]
            try:
                op(*new, **kwargs, **outs)
            except ERRORS:
                tried = True
                for a, b in zip(operands, before, strict=True):
                    assert a.shape == b.shape and strata.equal(a.nan_to_num(), b.nan_to_num()), "an operand was written"
    if not tried:
        pytest.skip("no sample of it raises for a far index")


OUTS = [(e, s) for e in ENTRIES for kind, s in e.operators() if kind == "out"]


@pytest.mark.parametrize(("entry", "schema"), OUTS, ids=[s.full for _, s in OUTS])
def test_an_out_of_another_dtype(entry, schema):
    """The last of the tensors given is one that cannot take a result: running statistics and the other outs stay too."""
    written = [a for a in schema.args if a.written]
    if any(a.is_tensors for a in written):
        pytest.skip("a list of outs")
    tried = False
    for args, kwargs in calls(entry, "float32"):
        try:
            results = operator(entry.schema)(*args, **kwargs)
        except ERRORS:
            continue
        results = results if isinstance(results, (list, tuple)) else [results]
        outs = {a.name: strata.ones(r.shape, dtype=r.dtype) for a, r in zip(written, results, strict=True)}
        outs[written[-1].name] = strata.ones(results[-1].shape, dtype=strata.bool)
        operands = [a for a in flattened([*args, *kwargs.values(), *outs.values()]) if isinstance(a, strata.Tensor)]
        before = [a.clone() for a in operands]
        try:
            operator(schema)(*args, **kwargs, **outs)
        except ERRORS:
            tried = True
            for a, b in zip(operands, before, strict=True):
                assert a.shape == b.shape and strata.equal(a.nan_to_num(), b.nan_to_num()), "an operand was written"
    if not tried:
        pytest.skip("takes it")
