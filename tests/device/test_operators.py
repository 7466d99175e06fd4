"""Every operator gives the CPU's bits on every device that is there: results, what it writes, gradients; dtypes, strides and errors. What
runs there by printed kernels and what goes to the CPU and back is compared alike. A sample of the table and of dtypes; all of them with
STRATA_TEST_ALL=1. STRATA_TEST_SCHEDULES=N runs each call N times, on the null device under as many orders of its items."""

from __future__ import annotations

import os

import devices
import pytest
import strata
from strata.testing._device import calls
from strata.utils._pytree import tree_leaves
from table import ENTRIES, SAMPLES, TESTED, Maker, convert, dtype, operator, sampled, tensor

DEVICES = devices.present()
SCHEDULES = int(os.environ.get("STRATA_TEST_SCHEDULES", "1"))
FALLS_BACK = {d: {row.op for row in strata.ops.coverage(d).rows() if row.runs == "fallback"} for d in DEVICES}
# Compiling for a device takes its time.
CASES = [(d, e) for d in DEVICES for e in sampled(ENTRIES, 200 if d.type == "null" else 25)]


def called(entry, device, sample, differentiate):
    """What the operator gives there, its results, and the arguments."""

    def on(t):
        return tensor(t) if device is None else tensor(t).to(device)

    args = convert(list(sample.args), on, dtype)
    kwargs = {k: convert(v, on, dtype) for k, v in sample.kwargs.items()}
    defined = entry.schema.full not in calls.UNDEFINED
    return *calls.ran(device, operator(entry.schema), args, kwargs, defined, differentiate), [*args, *kwargs.values()]


@pytest.mark.parametrize(("there", "entry"), CASES, ids=lambda v: v.type if isinstance(v, strata.device) else v.schema.full)
def test_an_operator_gives_the_cpus_bits(there, entry):
    compared, fell = 0, set()
    for name in ["float32", *sampled(TESTED[1:], 2, entry.schema.full)]:
        for sample in SAMPLES[entry.row.samples](Maker(entry.schema.full, name)):
            for differentiate in (False, True):
                strata.fallback.reset()
                want, _, args = called(entry, None, sample, differentiate)
                for _ in range(SCHEDULES):
                    got, result, _ = called(entry, there, sample, differentiate)
                    assert calls.verdict(entry.schema.full, there, got, want, args, result) is None, (name, differentiate, args)
                    compared += want is not None
                # The CPU says the errors, and without an element to compute looks at what may be refused.
                if not isinstance(want, str) and all(t.numel() for t in tree_leaves([args, result]) if isinstance(t, strata.Tensor)):
                    fell |= {row.op for row in strata.fallback.rows()}
    # What fell back is what strata.ops.coverage says of operators.
    assert fell <= FALLS_BACK[there]
    if not compared:
        pytest.skip("no sample")
