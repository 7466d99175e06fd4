"""Pinned memory and copies that don't wait, copies between devices: on the null device."""

from __future__ import annotations

import random
import time

import devices
import pytest
import strata
from test_streams import asked

DEVICE = devices.null()
OTHER = strata.device("null", 1)


def test_pinned_tensors_are_the_cpus():
    x = strata.randn(4, 6)
    for t in (x, x.t(), x[:, ::2], x[:0], strata.tensor(3.0), x.to(strata.bfloat16)):
        p = t.pin_memory()
        assert p.is_pinned() and not t.is_pinned() and p.device.type == "cpu" and p.pin_memory() is p
        assert p.equal(t) and p.stride() == (t.stride() if t.is_contiguous() or t.t().is_contiguous() else t.contiguous().stride())
        assert (p + 1).equal(t + 1) and not (p + 1).is_pinned()
    assert p[...].is_pinned()
    grad = strata.randn(3, requires_grad=True)
    grad.pin_memory().to(DEVICE).sum().backward()
    assert grad.grad.equal(strata.ones(3))


def test_copies_of_pinned_memory_do_not_wait():
    x = strata.randn(1000).pin_memory()
    there = x.to(DEVICE)
    strata.accelerator.synchronize(DEVICE)
    back = strata.empty(1000).pin_memory()
    with asked("delay_copy_us", 200_000):
        start = time.monotonic()
        up = x.to(DEVICE, non_blocking=True)
        down = there.to("cpu", non_blocking=True)
        back.copy_(there, non_blocking=True)
        began = time.monotonic() - start
        strata.accelerator.synchronize(DEVICE)
        whole = time.monotonic() - start
    assert began < 0.15 and whole > 0.5
    assert down.is_pinned() and down.equal(x) and back.equal(x) and up.cpu().equal(x)


def test_pinned_memory_may_be_freed_while_a_copy_is_under_way():
    chooser = random.Random(3)
    with asked("delay_copy_us", 2000):
        kept = []
        for i in range(60):
            size = chooser.choice((1, 100, 700))
            kept.append((i, strata.full((size,), float(i)).pin_memory().to(DEVICE, non_blocking=True)))
            down = kept[chooser.randrange(len(kept))][1].to("cpu", non_blocking=True)
            del down
        for i, t in kept:
            assert t.cpu().equal(strata.full(t.shape, float(i)))


def test_a_copy_that_waits_has_been_done_with_pinned_memory():
    x = strata.zeros(100).pin_memory()
    with asked("delay_copy_us", 20_000):
        there = x.to(DEVICE)
        x.fill_(1)
    assert there.cpu().equal(strata.zeros(100))


def test_other_dtypes_and_orders_wait():
    x = strata.randn(2, 3, 4, 5).pin_memory()
    with asked("delay_copy_us", 20_000):
        for options in ({"dtype": strata.float64}, {"memory_format": strata.channels_last}):
            there = x.to(DEVICE, non_blocking=True, **options)
            assert there.cpu().equal(x.to(**options))
        half = strata.empty(2, 3, 4, 5, dtype=strata.float16).pin_memory()
        assert half.copy_(x.to(DEVICE), non_blocking=True).equal(x.to(strata.float16))


def test_between_devices():
    x = strata.randn(5, 7)
    for t in (x, x.t(), x[1:, ::2], x[:0]):
        with asked("delay_copy_us", 5000):
            first = t.to(DEVICE)
            there = (first * 2).to(OTHER)
            assert there.device == OTHER and there.cpu().equal(t * 2)
            assert strata.zeros_like(t, device=OTHER).copy_(first).cpu().equal(t)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.to(DEVICE).pin_memory()


def test_a_loader_pins_its_batches():
    data = strata.utils.data.TensorDataset(strata.arange(12.0).reshape(6, 2), strata.arange(6))
    seen = [(x, y) for x, y in strata.utils.data.DataLoader(data, batch_size=4, pin_memory=True)]
    assert all(x.is_pinned() and y.is_pinned() for x, y in seen) and strata.cat([x for x, _ in seen]).equal(data.tensors[0])
