"""Where PyTorch's result of channels_last operands, or the gradient, is channels_last, ours is. Where PyTorch's is
contiguous, ours may have kept the format."""

from __future__ import annotations

import json

from kit import Maker, convert, flattened
from layout_cases import cases, functional
from table import ENTRIES, ROOT, SKIPS, dtype, operator, pytest, strata, tensor

RECORDED = json.loads((ROOT / "tests/data/layouts.json").read_text())
BY_NAME = {e.schema.full: e for e in ENTRIES}
FORMATS = {4: strata.channels_last, 5: strata.channels_last_3d}


def channels_last(t):
    made = tensor(t)
    return made.contiguous(memory_format=FORMATS[made.dim()]) if made.dim() in FORMATS else made


def is_last(t) -> bool:
    return t.dim() in FORMATS and t.is_contiguous(memory_format=FORMATS[t.dim()])


def measured(op, c, length: int) -> tuple[list[bool], bool]:
    """Whether each result is channels_last, and the gradient of the first operand where `length` has room for it."""
    args = convert(c.args, channels_last, dtype)
    kwargs = {k: convert(v, channels_last, dtype) for k, v in c.kwargs.items()}
    found = [r for r in flattened([op(*args, **kwargs)]) if isinstance(r, strata.Tensor)]
    if len(found) == length:
        return [is_last(r) for r in found], False
    first = args[0].requires_grad_()
    found = [r for r in flattened([op(*args, **kwargs)]) if isinstance(r, strata.Tensor)]
    target = next(r for r in found if r.requires_grad and r.is_floating_point())
    try:
        (grad,) = strata.autograd.grad(target, first, strata.ones_like(target), allow_unused=True)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
        return [*[is_last(r) for r in found], False], True  # skips.json says why it has none
    return [is_last(r) for r in [*found, grad]], True


@pytest.mark.parametrize("name", list(RECORDED))
def test_channels_last_is_kept(name):
    reason = SKIPS["layouts"].get(name)
    if reason:
        pytest.skip(reason)
    if name in BY_NAME:
        entry = BY_NAME[name]
        op, made = operator(entry.schema), list(cases(name, entry.row.samples))
    else:
        op = getattr(strata.nn.functional, name.split()[0])
        made = [functional(Maker("layouts", "float32"))[name]]
    assert len(made) == len(RECORDED[name]), "the samples changed: record anew by tools/record_layouts.py"
    for i, (c, want) in enumerate(zip(made, RECORDED[name], strict=True)):
        if want is not None:
            got, graded = measured(op, c, len(want))
            lost = [n for n, (ours, theirs) in enumerate(zip(got, want, strict=True)) if theirs and not ours]
            if graded and f"{name} gradient" in SKIPS["layouts"] and lost == [len(got) - 1]:
                continue
            assert not lost, f"{name} case {i}: results {lost} are not channels_last{', the last is a gradient' * graded}"
