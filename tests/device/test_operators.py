"""Every operator gives the CPU's bits on every device that is there: results, what it writes, gradients; dtypes, strides and errors. What
runs there by printed kernels and what goes to the CPU and back is compared alike. A sample of the table; all of it with
STRATA_TEST_ALL=1. STRATA_TEST_SCHEDULES=N runs each call N times, on the null device under as many orders of its items."""

from __future__ import annotations

import os
import warnings

import devices
import pytest
import strata
from table import ENTRIES, SAMPLES, TESTED, Maker, bits, convert, dtype, operator, sampled, tensor

DEVICES = devices.present()
SCHEDULES = int(os.environ.get("STRATA_TEST_SCHEDULES", "1"))
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
# Why the bits of results are not compared.
UNDEFINED = {
    "aten::empty.memory_format": "memory without values",
    "aten::empty_like": "memory without values",
    "aten::empty_strided": "memory without values",
    "aten::new_empty": "memory without values",
    "aten::new_empty_strided": "memory without values",
    "aten::resize_": "memory that it adds has no values",
    "aten::resize_as_": "memory that it adds has no values",
}
# Results lie where the `device` argument says; or the operator takes a tensor on the CPU.
ELSEWHERE = ("aten::to.device", "aten::linspace.Tensor_Tensor", "aten::logspace.Tensor_Tensor")
TAKES_CPU = ("aten::tensor_split.tensor_indices_or_sections",)


def tensors_of(value):
    if isinstance(value, strata.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)


def shown(value, defined=True):
    """What a call gave, for comparison: tensors by dtype, sizes, strides and bits."""
    if isinstance(value, strata.Tensor):
        host = value.detach().cpu().contiguous()
        host = host.float() if host.dtype == strata.bfloat16 else host
        return str(value.dtype), tuple(value.shape), value.stride(), bits(host.numpy()) if defined else None
    if isinstance(value, (list, tuple)):
        return [shown(v, defined) for v in value]
    return repr(value)


def wait(device):
    if device is not None:
        strata.accelerator.synchronize(device)


def ran(device, op, args, kwargs, defined, differentiate):
    """Results, arguments afterwards and gradients, or the error."""
    strata.manual_seed(5)
    inputs = list(tensors_of([*args, *kwargs.values()]))
    if differentiate:
        inputs = [t for t in inputs if t.is_floating_point() or t.is_complex()]
        for t in inputs:
            t.requires_grad_()
    try:
        result = op(*args, **kwargs)
        wait(device)
        if not differentiate:
            return shown([result, list(tensors_of([*args, *kwargs.values()]))], defined), result
        made = [t for t in tensors_of(result) if t.requires_grad]
        if not made:
            return None, result
        grads = strata.autograd.grad(made, inputs, [strata.ones_like(t) for t in made], allow_unused=True)
        wait(device)
        return shown(list(grads), defined), result
    except ERRORS as error:
        return type(error).__name__, None


# Compiling for a device takes its time.
CASES = [(d, e) for d in DEVICES for e in sampled(ENTRIES, 200 if d.type == "null" else 25)]


def called(entry, device, sample, differentiate):
    """What the operator gives there, its results, and the arguments."""

    def on(t):
        return tensor(t) if device is None else tensor(t).to(device)

    args = convert(sample.args, on, dtype)
    kwargs = {k: convert(v, on, dtype) for k, v in sample.kwargs.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shows = entry.schema.full not in UNDEFINED
        return *ran(device, operator(entry.schema), args, kwargs, shows, differentiate), [*args, *kwargs.values()]


@pytest.mark.parametrize(("there", "entry"), CASES, ids=lambda v: v.type if isinstance(v, strata.device) else v.schema.full)
def test_an_operator_gives_the_cpus_bits(there, entry):
    compared = 0
    for name in TESTED:
        for sample in SAMPLES[entry.row.samples](Maker(entry.schema.full, name)):
            for differentiate in (False, True):
                want, _, args = called(entry, None, sample, differentiate)
                for _ in range(SCHEDULES):
                    got, result, _ = called(entry, there, sample, differentiate)
                    if entry.schema.full in TAKES_CPU and got == "RuntimeError":
                        break
                    assert got == want, (name, differentiate, args)
                    if not isinstance(want, str) and entry.schema.full not in ELSEWHERE and any(True for _ in tensors_of(args)):
                        assert all(t.device.type == there.type for t in tensors_of(result))
                    compared += want is not None
    if not compared:
        pytest.skip("no sample")
