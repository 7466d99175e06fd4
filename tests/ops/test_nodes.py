"""Autograd nodes beside PyTorch's: the names that grad_fn shows, and how many inputs a node's hooks see. A composite shows
the nodes of its parts, and which parts it has is each library's own business."""

from __future__ import annotations

import json

from kit import flattened
from table import ENTRIES, ROOT, calls, operator, pytest, skip_reason, strata

RECORDED = json.loads((ROOT / "tests/data/nodes.json").read_text())
CASES = [e for e in ENTRIES if e.schema.full in RECORDED and e.kind != "composite" and not skip_reason(e, "nodes")]


def recording(value):
    if isinstance(value, strata.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.clone().requires_grad_(True)
    if isinstance(value, (list, tuple)):
        return type(value)(recording(v) for v in value)
    return value


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_nodes(entry):
    index, expected = RECORDED[entry.schema.full]
    args, kwargs = list(calls(entry, "float64"))[index]
    args = [a if x.written else recording(a) for a, x in zip(args, entry.schema.args)]
    result = operator(entry.schema)(*args, **{k: recording(v) for k, v in kwargs.items()})
    nodes = [r.grad_fn for r in flattened([result]) if isinstance(r, strata.Tensor)]
    assert [None if n is None else [type(n).__name__, len(n.next_functions)] for n in nodes] == expected


@pytest.mark.parametrize("work", [lambda x: x + 2, lambda x: x - 2, lambda x: x * 2, lambda x: x / 2], ids="+-*/")
def test_a_number_is_an_input_without_gradient(work):
    y = work(strata.ones(3, requires_grad=True))
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    assert [n for _, n in y.grad_fn.next_functions] == [0, 0] and y.grad_fn.next_functions[1][0] is None
    y.sum().backward()
    ((inputs, outputs),) = seen
    assert len(inputs) == 2 and inputs[0].shape == (3,) and inputs[1] is None and len(outputs) == 1
