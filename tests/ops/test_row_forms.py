"""Pointwise kernels over rows that lie apart, that are all the same one, or that have one value each: the bits of copies."""

from __future__ import annotations

import itertools

from table import ENTRIES, bits, pytest, run, strata
from table import operator as entry_operator

COLUMNS = (15, 16, 17, 37, 64, 80, 1040)
ROWS = 70
GIVEN = {"Scalar": 2, "float": 2.0, "int": 2}


def required(entry) -> list[str] | None:
    """The types of what a pointwise entry of one or two tensors has to be given; None for others."""
    types = [a.type for a in entry.schema.args if a.default is None]
    fits = entry.kind == "pointwise" and not any(a.written for a in entry.schema.args) and set(types) <= {"Tensor", *GIVEN}
    return types if fits and types.count("Tensor") in (1, 2) else None


CASES = [(e, d) for e in ENTRIES if required(e) for d in ("float32", "float64", "bfloat16", "int64")]


@pytest.mark.parametrize("entry, dtype", CASES, ids=lambda v: v if isinstance(v, str) else v.schema.full)
def test_rows_give_the_bits_of_copies(entry, dtype):
    strata.manual_seed(3)
    op, types = entry_operator(entry.schema), required(entry)
    for columns in COLUMNS:
        wide = (strata.rand(ROWS, columns + 3) * 0.9 + 0.05).to(getattr(strata, dtype))
        forms = [wide[:, 1 : columns + 1], wide[:, :1].expand(ROWS, columns), wide[0, :columns].expand(ROWS, columns), wide[:, :columns].contiguous()]

        def results(tensors):
            left = iter(tensors)
            return [bits(a) for a in run(op, [next(left) if t == "Tensor" else GIVEN[t] for t in types], {})]

        for operands in itertools.product(forms, repeat=types.count("Tensor")):
            try:
                want = results([t.contiguous() for t in operands])
            except (RuntimeError, TypeError, NotImplementedError):
                return  # not of this dtype
            assert results(operands) == want, (columns, [t.stride() for t in operands])


@pytest.mark.parametrize("columns", (16, 17, 32, 128))
def test_a_value_of_the_result_itself_is_read_before_it_is_written(columns):
    """Whether the value is the same for all rows, or for some; a result that lies where it is read need not be without gaps."""
    wide = strata.rand(4, 5, columns + 3) + 1
    for value in (lambda x: x[0, 0, 0], lambda x: x[2, 3, 1], lambda x: x[:, :1, :1], lambda x: x[:1, :1, :1]):
        for op in (strata.sub, strata.mul, strata.div):
            x = wide.clone()[:, :, :columns]
            want = op(x.clone(), value(x).clone())
            assert strata.equal(op(x, value(x), out=x), want)
