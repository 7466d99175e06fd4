"""Where PyTorch's result of operands that lie in another order of dims is contiguous, ours is: `view` takes it. Where PyTorch's is
not, ours may be."""

from __future__ import annotations

import json

from kit import convert
from layout_cases import ORDERS, in_order, word
from table import ROOT, SKIPS, dtype, pytest, recorded_calls, strata, tensor

RECORDED = json.loads((ROOT / "tests/data/turned.json").read_text())


@pytest.mark.parametrize("name", list(RECORDED))
def test_results_are_contiguous_where_pytorchs_are(name):
    if reason := SKIPS["turned"].get(name):
        pytest.skip(reason)
    op, made = recorded_calls(name)
    for order in ORDERS:
        recorded = RECORDED[name][order]
        assert len(made) == len(recorded), "the samples changed: record anew by tools/record_layouts.py"
        for i, (c, want) in enumerate(zip(made, recorded, strict=True)):
            if want == "-":
                continue
            args, *values = (convert(v, lambda t: in_order(tensor(t), order), dtype) for v in (c.args, *c.kwargs.values()))  # noqa: B023
            got = word(op(*args, **dict(zip(c.kwargs, values, strict=True))), strata)
            lost = [n for n, (ours, theirs) in enumerate(zip(got, want, strict=True)) if theirs > ours]
            assert not lost, f"{name} case {i}, dims {order}: results {lost} are not contiguous"
