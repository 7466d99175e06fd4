"""Derivatives of shape-only tensors: gradients have the shapes, dtypes and strides of the real ones."""

from __future__ import annotations

from table import calls, operator, pytest, skip_reason, strata
from test_meta import TAKERS, described, on_meta, outcome, shape_only, tensors

CASES = [e for e in TAKERS if e.grad and not skip_reason(e, "meta") and not skip_reason(e, "grad")]


def asking(value, leaves: list):
    """The same with floating tensors as leaves that require gradients."""
    if isinstance(value, strata.Tensor) and value.is_floating_point():
        leaves.append(value.detach().requires_grad_())
        return leaves[-1]
    if isinstance(value, (list, tuple)):
        return type(value)(asking(v, leaves) for v in value)
    return value


def gradients(op, args, kwargs):
    leaves: list = []
    results = op(*[asking(a, leaves) for a in args], **{k: asking(v, leaves) for k, v in kwargs.items()})
    made = [t for t in tensors(results) if t.requires_grad]
    if not made:
        return []
    found = strata.autograd.grad(made, leaves, [strata.ones_like(t.detach()) for t in made], allow_unused=True)
    assert all(g is None or g.is_meta == made[0].is_meta for g in found)
    return [None if g is None else described(g) for g in found]


@pytest.mark.parametrize("without", (shape_only, on_meta))
@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_meta_gradients(entry, without):
    op = operator(entry.schema)
    for i, (args, kwargs) in enumerate(calls(entry, "float32")):
        real, error = outcome(gradients, (op, args, kwargs), {})
        if error is not None:
            continue
        made, refused = outcome(gradients, (op, without(list(args)), {k: without(v) for k, v in kwargs.items()}), {})
        reads = "gradient" in entry.reads and isinstance(refused, NotImplementedError)
        assert reads or refused is None, f"sample {i}: on meta tensors {refused!r}"
        assert reads or made == real, f"sample {i}: on meta tensors {made}, really {real}"
