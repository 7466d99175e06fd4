"""Long arrays of half types are looked up in a table of all their values (run/loop/pointwise_table.cpp): the bits of an element
do not depend on how many there are, for every operator of one tensor."""

from __future__ import annotations

from kit import Maker, convert
from table import ENTRIES, SAMPLES, dtype, operator, pytest, strata, tensor

TIMES = 9  # 65,536 values so often are over the 2**19 elements from which on there are tables
FAMILIES = ("activation", "pointwise", "power", "special", "unary")
ONE_BY_ONE = [e for e in ENTRIES if e.family in FAMILIES and [a.type for a in e.schema.args if a.type.startswith("Tensor")] == ["Tensor"]]


def words(t):
    return t.contiguous().view(strata.int16)


def all_values(half):
    return strata.arange(65536, dtype=strata.int32).to(strata.int16).view(half)


@pytest.mark.parametrize("half", [strata.float16, strata.bfloat16], ids=str)
def test_long_arrays(half):
    short = all_values(half)
    long = short.repeat(TIMES)
    seen = []
    for entry in ONE_BY_ONE:
        f = operator(entry.schema)
        for c in list(SAMPLES[entry.row.samples](Maker(entry.schema.full, "float32")))[:2] if entry.row.samples else []:
            args = convert(c.args, lambda t: tensor(t), dtype)
            kwargs = {k: convert(v, lambda t: tensor(t), dtype) for k, v in c.kwargs.items()}
            try:
                one = f(short.clone(), *args[1:], **kwargs)
            except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
                continue
            if not isinstance(one, strata.Tensor) or one.dtype != half or one.shape != short.shape:
                continue
            many = f(long.clone(), *args[1:], **kwargs)
            seen.append(entry.schema.full)
            assert strata.equal(words(many), words(one).repeat(TIMES)), entry.schema.full
    assert len(set(seen)) > 60 and {"aten::tanh", "aten::gelu", "aten::lgamma"} <= set(seen)


@pytest.mark.parametrize("half", [strata.float16, strata.bfloat16], ids=str)
def test_layouts_and_places(half):
    short = all_values(half)
    expected, long = words(short.tanh()), short.repeat(TIMES)
    turned = long.reshape(TIMES, 65536).t()
    assert strata.equal(words(turned.tanh()), words(expected.repeat(TIMES).reshape(TIMES, 65536).t()))
    assert strata.equal(words(short.expand(TIMES, 65536).tanh()), expected.repeat(TIMES).reshape(TIMES, 65536))
    behind = strata.cat([long, long])[1:-1:2]
    assert strata.equal(words(behind.tanh()), words(strata.cat([long, long]).tanh()[1:-1:2]))
    result = strata.empty(TIMES * 65536, dtype=strata.float32)
    strata.tanh(long, out=result)
    assert strata.equal(words(result.to(half)), expected.repeat(TIMES))
    long.tanh_()
    assert strata.equal(words(long), expected.repeat(TIMES))
