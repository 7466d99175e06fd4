"""Kernels whose rows groups of items share: the CPU's bits under any order of items, and a missing barrier shows."""

from __future__ import annotations

import ctypes
import os
import random

import devices
import pytest
import strata

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control
SCHEDULES = int(os.environ.get("STRATA_TEST_SCHEDULES", "6"))
# Within a group's items, one or several chunks of 1,024 positions; rows of several chunks of 65,536 elements; not multiples of anything.
SHAPES = ((3, 17), (2, 5, 67), (2, 1029), (2, 200003))
DTYPES = (strata.float32, strata.bfloat16, strata.float64, strata.int64, strata.bool)


def rows(shape: tuple[int, ...], dtype: strata.dtype) -> strata.Tensor:
    x = strata.randn(*shape) * 3
    if dtype.is_floating_point:
        x.view(-1)[::7] = 0.0
        x.view(-1)[::14] = -0.0
        x.view(-1)[5] = float("inf")
    return (x > 0) if dtype == strata.bool else x.to(dtype)


OPERATORS = {
    "sum": lambda x: x.sum(-1),
    "prod": lambda x: x.prod(0),
    "amax": lambda x: x.amax(-1),
    "amin of zeros": lambda x: x.abs().amin(-1),
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(0),
    "max": lambda x: x.max(-1),
    "any": lambda x: x.any(-1),
    "all": lambda x: x.all(),
    "sum of all": lambda x: x.sum(),
    "softmax": lambda x: x.softmax(-1),
    "in place": lambda x: x.clone().sub_(x.amax(-1, keepdim=True)).softmax(-1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "layer_norm": lambda x: strata.nn.functional.layer_norm(x, x.shape[-1:]),
    "transposed": lambda x: x.transpose(0, -1).sum(-1),
}


def same(a: object, b: object) -> bool:
    if not isinstance(a, strata.Tensor):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    b = b.cpu()
    if not a.is_floating_point():
        return a.dtype == b.dtype and a.equal(b)
    alike = (a == b) & (a.signbit() == b.signbit()) | a.isnan() & b.isnan()
    return a.dtype == b.dtype and a.shape == b.shape and bool(alike.all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_groups_have_the_bits_of_the_cpu(shape: tuple[int, ...], dtype: strata.dtype) -> None:
    strata.manual_seed(len(shape))
    x = rows(shape, dtype)
    nan = x.clone()
    if dtype.is_floating_point:
        nan.view(-1)[len(shape) :: 11] = float("nan")
    for given in (x, nan):
        for name, run in OPERATORS.items():
            try:
                expected = run(given)
            except RuntimeError:  # not of this dtype
                continue
            for _ in range(SCHEDULES):
                assert same(expected, run(given.to(DEVICE))), name
    assert "softmax" not in strata.fallback.report()


@pytest.mark.parametrize("dtype", (strata.float32, strata.int32), ids=str)
def test_rows_of_more_chunks_than_a_group_has_items(dtype: strata.dtype) -> None:
    """19 whole chunks of 65,536 elements and a piece: one batch of 16 and a rest."""
    strata.manual_seed(9)
    x = (strata.randn(2, 1_300_001) * 3).to(dtype)
    for name in ("sum", "amax", "amin of zeros", "argmax", "max", "norm"):
        if dtype.is_floating_point or name != "norm":
            expected, there = OPERATORS[name](x), x.to(DEVICE)
            for _ in range(SCHEDULES):
                assert same(expected, OPERATORS[name](there)), name


def test_a_missing_barrier_is_seen() -> None:
    """Of a softmax: without one of its 12 barriers some row differs, whatever the order of items."""
    strata.manual_seed(4)
    x = strata.randn(200, 100)
    expected, there = x.softmax(-1), x.to(DEVICE)
    chosen = random.Random(5)
    try:
        seen = 0
        for _ in range(50):
            CONTROL(b"skip_barrier", str(chosen.randint(1, 12)).encode())
            seen += not same(expected, there.softmax(-1))
        assert seen >= 49
    finally:
        CONTROL(b"skip_barrier", b"0")
    assert same(expected, there.softmax(-1))
