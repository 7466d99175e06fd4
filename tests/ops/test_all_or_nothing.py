"""An operator that raises leaves its operands as they were: results of out= and lists that are written."""

from __future__ import annotations

import numpy as np
from table import ENTRIES, calls, operator, pytest, strata

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
SEVERAL = [e for e in ENTRIES if e.out and len(e.schema.returns) > 1]
LISTS = [s for e in ENTRIES for _, s in e.operators() if s.args and s.args[0].written and s.args[0].type == "Tensor[]" and "fused" not in s.name]


def results(entry):
    """The first sample that gives results: its arguments and them."""
    for dtype in ("float32", "complex64", "int64"):
        if entry.row.samples:
            for args, kwargs in calls(entry, dtype):
                try:
                    return args, kwargs, list(operator(entry.schema)(*args, **kwargs))
                except ERRORS:
                    continue
    return None


@pytest.mark.parametrize("entry", SEVERAL, ids=lambda e: e.schema.full)
def test_no_result_is_written_before_the_last_is_refused(entry):
    found = results(entry)
    if found is None:
        pytest.skip("no sample gives results")
    args, kwargs, values = found
    names = [a.name for a in entry.out_schema().args if a.written]
    outs = {n: strata.zeros(7, dtype=v.dtype) for n, v in zip(names, values)}
    outs[names[-1]] = strata.zeros(7, dtype=strata.bool)
    with pytest.raises(ERRORS):
        operator(entry.out_schema())(*args, **kwargs, **outs)
    for name, out in outs.items():
        assert out.shape == (7,) and not out.any(), f"{name} was written"


@pytest.mark.parametrize("schema", LISTS, ids=lambda s: s.full)
@pytest.mark.parametrize("last", ["a leaf", "integers", "expanded", "another shape"])
def test_no_tensor_of_a_list_is_written_before_another_is_refused(schema, last):
    first = strata.ones(3)
    bad = {"a leaf": lambda: strata.ones(3, requires_grad=True), "integers": lambda: strata.ones(3, dtype=strata.int64),
           "expanded": lambda: strata.ones(1).expand(3), "another shape": lambda: strata.ones(2)}[last]()
    given = {"Tensor[]": lambda n: [strata.full((3,), 2.0), strata.full((3,), 2.0)], "Scalar": lambda n: 2.5, "Tensor": lambda n: strata.full((1,), 0.0 if n == "found_inf" else 2.0)}
    rest = [given[a.key](a.name) for a in schema.args[1:] if a.default is None]
    try:
        operator(schema)([first, bad], *rest)
    except ERRORS:
        np.testing.assert_array_equal(first.numpy(), np.ones(3, np.float32))
    else:
        assert last != "a leaf" and last != "expanded"


def test_no_running_statistic_is_moved_before_the_other_is_refused():
    mean, var = strata.zeros(3), strata.zeros(3, dtype=strata.int64)
    with pytest.raises(RuntimeError):
        strata.native_batch_norm(strata.randn(5, 3), None, None, mean, var, True, 0.1, 1e-5)
    assert mean.tolist() == [0, 0, 0]


def test_no_result_is_resized_before_another_that_overlaps_is_refused():
    first, second = strata.empty(2, 2), strata.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        strata.ops.aten.var_mean.correction_out(strata.randn(3, 4), [1], out0=first, out1=second)
    assert first.shape == (2, 2)
