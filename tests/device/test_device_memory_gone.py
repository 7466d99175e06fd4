"""Operands whose memory was given back: on every device an error where the CPU raises one, nothing written, and the device goes on.
A sample of the table; all of it with STRATA_TEST_ALL=1."""

from __future__ import annotations

import warnings

import devices
import pytest
import strata
from table import ENTRIES, SAMPLES, Maker, convert, dtype, operator, sampled, tensor

DEVICE = devices.null()
# Where one of the two does not look at the operand.
APART = {
    "aten::to.device": "to the CPU is a copy from the device and none from the CPU",
    "aten::tensor_split.tensor_indices_or_sections": "takes a tensor on the CPU",
    "aten::baddbmm": "the CPU's library does not read what counts for nothing",
    "aten::masked_scatter": "the CPU reads no source where the mask chooses nothing",
    "aten::nonzero_static": "of size 0 the device has nothing to do",
}
CASES = [e for e in ENTRIES if any(a.is_tensor for a in e.schema.args) and e.schema.full not in APART]


def kind(entry, sample, at, device):
    """The kind of error of a call whose operand at a place is gone, or None."""

    def on(t):
        return tensor(t).clone().to(device)

    args = convert(sample.args, on, dtype)
    kwargs = {k: convert(v, on, dtype) for k, v in sample.kwargs.items()}
    before = [a.cpu() for a in args if isinstance(a, strata.Tensor)]
    args[at].untyped_storage().resize_(0)
    try:
        operator(entry.schema)(*args, **kwargs)
        strata.accelerator.synchronize(DEVICE)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        after = [a for a in args if isinstance(a, strata.Tensor)]
        for i, (a, b) in enumerate(zip(after, before)):
            assert a is args[at] or strata.equal(a.cpu().nan_to_num(), b.nan_to_num()), i
        return type(error).__name__
    return None


@pytest.mark.parametrize("entry", sampled(CASES, 150), ids=lambda e: e.schema.full)
def test_memory_that_was_given_back(entry):
    tried = 0
    for sample in SAMPLES[entry.row.samples](Maker(entry.schema.full, "float32")):
        for at, a in enumerate(convert(sample.args, tensor, dtype)):
            if not isinstance(a, strata.Tensor) or a.numel() == 0 or tried > 6:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = kind(entry, sample, at, "cpu")
                # An index that is outside as well may be found first.
                assert (kind(entry, sample, at, DEVICE) is None) == (want is None), (at, want)
            tried += 1
    assert (strata.ones(2, device=DEVICE) + 1).tolist() == [2, 2]
