"""What fails beneath a device's operators: events that can't be asked, copies, memory that is short, a fork."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import devices
import pytest
import strata
from test_streams import asked

DEVICE = devices.null()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    strata.accelerator.synchronize(DEVICE)


def test_a_block_whose_event_fails_is_given_to_one_tensor_only():
    stream = strata.Stream(DEVICE)
    for failing in (1, 2, 3):
        with asked("delay_us", 2000):
            shared = [strata.full((300,), float(i), device=DEVICE) for i in range(4)]
            with stream:
                stream.wait_stream(strata.accelerator.default_stream(DEVICE))
                made = [t + 1 for t in shared]
            del shared
        time.sleep(0.1)  # all is over, and has not been asked for
        with asked("fail_event", f"{failing} 2"):
            kept = [strata.full((300,), float(i), device=DEVICE) for i in range(12)]
        strata.accelerator.synchronize(DEVICE)
        kept += [strata.full((300,), float(i), device=DEVICE) for i in range(12, 24)]
        assert [t.cpu()[7].item() for t in kept] == [float(i) for i in range(24)]
        assert [t.cpu()[7].item() for t in made] == [1.0, 2.0, 3.0, 4.0]


def test_pinned_memory_outlives_events_that_fail():
    there = strata.arange(100.0, device=DEVICE)
    for failing in ("1 0", "1 3", "2 5"):
        with asked("delay_copy_us", 2000), asked("fail_event", failing):
            for _ in range(6):
                down = there.to("cpu", non_blocking=True)
                up = down.to(DEVICE, non_blocking=True)
                del down
            gc.collect()
        strata.accelerator.synchronize(DEVICE)
        again = [strata.full((100,), float(i)).pin_memory() for i in range(8)]
        assert up.cpu().equal(there.cpu()) and [t[3].item() for t in again] == [float(i) for i in range(8)]


def test_pinned_memory_is_given_back():
    def mapped() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def pin() -> list[strata.Tensor]:
        return [strata.zeros(1 << 24).pin_memory() for _ in range(4)]

    pin()
    strata.accelerator.empty_host_cache()
    before = mapped()
    big = pin()
    assert mapped() - before > 200 << 20
    del big
    assert mapped() - before > 200 << 20
    strata.accelerator.empty_cache()
    assert mapped() - before > 200 << 20
    strata.accelerator.empty_host_cache()
    assert mapped() - before < 50 << 20


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_failed_copy_loses_no_error_and_blames_nobody_else(failing):
    x, outside = strata.arange(5.0, device=DEVICE), strata.tensor([1, 7], device=DEVICE)
    strata.accelerator.synchronize(DEVICE)
    strata.index_select(x, 0, outside)
    seen = []
    with asked("fail_copy", failing):
        for _ in range(4):
            try:
                x.sin()
                strata.accelerator.synchronize(DEVICE)
            except (RuntimeError, IndexError) as error:
                seen.append(error)
    assert sum("index_select" in str(e) and isinstance(e, IndexError) for e in seen) == 1, seen
    assert all("index_select" in str(e) or "a copy failed" in str(e) for e in seen), seen
    strata.index_select(x, 0, strata.tensor([1], device=DEVICE))
    strata.accelerator.synchronize(DEVICE)


CHILD = """
import os, sys, strata
device = strata.accelerator.load(sys.argv[1])
x = strata.ones(3, device=device)
x.sin().cpu()
pid = os.fork()
if pid == 0:
    code = 1
    try:
        for f in (lambda: x + 1, lambda: x.cpu(), lambda: strata.ones(2, device=device), lambda: strata.ones(2).to(device),
                  lambda: strata.accelerator.synchronize(device)):
            try:
                f()
            except RuntimeError as error:
                if "in forked subprocess" not in str(error) or "'spawn'" not in str(error):
                    raise
            else:
                raise AssertionError("no error")
        del x
        assert (strata.ones(100000) + 1).sum().item() == 200000.0
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert (x + 1).cpu().tolist() == [2.0, 2.0, 2.0]
"""


def test_a_child_says_that_the_device_is_its_parents():
    done = subprocess.run([sys.executable, "-c", CHILD, devices.plugin("null")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
