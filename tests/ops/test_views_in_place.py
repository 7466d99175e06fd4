"""In-place views of operands without elements that lie behind the end of their storage: what fresh ones give."""

from __future__ import annotations

import strata
from table import ENTRIES, SAMPLES, Maker, convert, dtype, operator, pytest, tensor

CASES = [e for e in ENTRIES if e.schema.name.endswith("_") and e.family in ("view", "shape") and e.schema.args[0].written]


def outcome(entry, sample, self):
    rest = convert(sample.args[1:], tensor, dtype)
    kwargs = {k: convert(v, tensor, dtype) for k, v in sample.kwargs.items()}
    try:
        result = operator(entry.schema)(self, *rest, **kwargs)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error).__name__
    return tuple(result.shape), tuple(self.shape)


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_operands_behind_the_end(entry):
    if entry.schema.name in ("as_strided_", "detach_"):
        pytest.skip("sizes of its own, or no view may be detached")
    for sample in SAMPLES[entry.row.samples](Maker(entry.schema.full, "float32")):
        shape = list(sample.args[0].data.shape)
        for d in range(len(shape)):
            sizes = [0 if k == d else n for k, n in enumerate(shape)]
            behind = strata.empty([2, *sizes])[1].narrow(0, 0, sizes[0])
            behind = behind.as_strided(sizes, behind.stride(), 3)
            assert outcome(entry, sample, behind) == outcome(entry, sample, strata.empty(sizes))
