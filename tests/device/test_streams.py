"""Streams and events of devices, on the null device: order, memory, gradients, errors."""

from __future__ import annotations

import contextlib
import ctypes
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import devices
import pytest
import strata

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control


@contextlib.contextmanager
def asked(what: str, value: object):
    assert CONTROL(what.encode(), str(value).encode()) == 0
    try:
        yield
    finally:
        CONTROL(what.encode(), b"0")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    strata.accelerator.synchronize(DEVICE)
    assert strata.accelerator.current_stream(DEVICE).stream_id == 0


def test_a_consumer_waits_for_its_producer_and_without_it_is_wrong():
    stream, own = strata.Stream(DEVICE), strata.accelerator.current_stream(DEVICE)
    for wait in ("event", "stream", "none"):
        x = strata.randn(1000)
        strata.accelerator.empty_cache(DEVICE)
        with asked("delay_copy_us", 150_000):
            with stream:
                there = x.to(DEVICE, non_blocking=True)
            if wait == "event":
                own.wait_event(stream.record_event())
            elif wait == "stream":
                own.wait_stream(stream)
            made = (there * 2 + 1).cpu()
        assert made.equal(x * 2 + 1) == (wait != "none"), wait


def test_programs_on_several_streams_have_one_streams_bits():
    chooser = random.Random(5)
    for _ in range(10):
        streams = [strata.accelerator.default_stream(DEVICE), strata.Stream(DEVICE), strata.Stream(DEVICE)]
        values = [strata.randn(64) for _ in range(3)]
        there = [(v.to(DEVICE), streams[0].record_event()) for v in values]
        with asked("delay_copy_us", 300):
            for _ in range(25):
                a, b, stream = chooser.randrange(len(values)), chooser.randrange(len(values)), chooser.choice(streams)
                values.append(values[a].sin() + values[b])
                with stream:
                    for _, event in (there[a], there[b]):
                        stream.wait_event(event)
                    there.append((there[a][0].sin() + there[b][0], stream.record_event()))
                if chooser.random() < 0.3:
                    gone = chooser.randrange(len(values))
                    del values[gone], there[gone]
        strata.accelerator.synchronize(DEVICE)
        assert all(t.cpu().equal(v) for v, (t, _) in zip(values, there))


def test_events():
    event, later = strata.Event(enable_timing=True), strata.Event(enable_timing=True)
    assert event.query() and event.device is None
    event.synchronize()
    there = strata.ones(10, device=DEVICE)
    strata.accelerator.synchronize(DEVICE)
    with asked("delay_us", 20_000):
        event.record()
        there = there + 1
        later.record()
        assert not later.query() and not strata.accelerator.current_stream(DEVICE).query()
        start = time.perf_counter()
        later.synchronize()
        assert time.perf_counter() - start > 0.02
    assert later.query() and event.device == there.device
    assert 20 <= event.elapsed_time(later) < 2000
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        stream = strata.Stream(DEVICE)
        event.elapsed_time(stream.record_event())
    with pytest.raises(RuntimeError, match="expected two events that were recorded"):
        event.elapsed_time(strata.Event(enable_timing=True))
    with pytest.raises(RuntimeError, match="expected a stream of null:0"):
        event.record(strata.Stream("null:1"))


def test_streams_are_values_and_contexts():
    a, b = strata.Stream(DEVICE), strata.Stream(DEVICE)
    assert a != b and a == strata.Stream._of(DEVICE, a.stream_id) and len({a, b, strata.Stream._of(DEVICE, b.stream_id)}) == 2
    own = strata.accelerator.current_stream(DEVICE)
    with a, b, a:
        assert strata.accelerator.current_stream(DEVICE) == a
        seen = []
        t = threading.Thread(target=lambda: seen.append(strata.accelerator.current_stream(DEVICE)))
        t.start(), t.join()
        assert seen == [own]
    strata.accelerator.set_stream(b)
    assert strata.null.current_stream() == b and strata.null.default_stream() == own
    with strata.null.stream(None):
        assert strata.null.current_stream() == b
    strata.accelerator.set_stream(own)
    assert {strata.Stream(DEVICE).stream_id for _ in range(80)} == set(range(1, 33))
    with pytest.raises(RuntimeError, match="expected a device of a plugin, got 'cpu'"):
        strata.Stream("cpu")


def test_memory_that_another_stream_uses_stays():
    stream, own = strata.Stream(DEVICE), strata.accelerator.current_stream(DEVICE)
    x = strata.randn(3000)
    for record in (False, True):
        there, spare = x.to(DEVICE), strata.ones(3000, device=DEVICE)
        before = strata.accelerator.memory_allocated(DEVICE)
        stream.wait_stream(own)
        with asked("delay_us", 10_000):
            with stream:
                for _ in range(3):
                    spare = spare * 1
                made = there * 3
            if record:
                there.record_stream(stream)
            del there
            # Of the same size, on the stream that the block was of: it would have been written before it was read.
            other = strata.full((3000,), 7.0, device=DEVICE)
            stream.synchronize()
            assert made.cpu().equal(x * 3)
        del other, made
        strata.accelerator.synchronize(DEVICE)
        assert strata.accelerator.memory_allocated(DEVICE) < before
        del spare
    strata.accelerator.empty_cache(DEVICE)
    assert strata.accelerator.memory_reserved(DEVICE) == strata.accelerator.memory_allocated(DEVICE)


def test_backward_runs_on_the_streams_of_the_forward_pass():
    a, b, own = strata.Stream(DEVICE), strata.Stream(DEVICE), strata.accelerator.current_stream(DEVICE)
    x, w = strata.randn(20), strata.randn(20)
    want_x, want_w = x.clone().requires_grad_(), w.clone().requires_grad_()
    ((want_x.sin() * want_w).exp() + want_x.cos()).sum().backward()
    for turn in range(3):
        there_x, there_w = x.to(DEVICE).requires_grad_(), w.to(DEVICE).requires_grad_()
        with asked("delay_us", 2000):
            seen = []

            def see(name, seen=seen):
                return lambda grad: seen.append((name, strata.accelerator.current_stream(DEVICE)))

            a.wait_stream(own)
            b.wait_stream(own)
            with a:
                one = (there_x.sin() * there_w).exp()
                one.register_hook(see("a"))
            with b:
                two = there_x.cos()
                two.register_hook(see("b"))
            own.wait_stream(a)
            own.wait_stream(b)
            loss = (one + two).sum()
            with a if turn == 2 else contextlib.nullcontext():
                if turn == 2:
                    a.wait_stream(own)
                if turn == 1:
                    grads = strata.autograd.grad(loss, [there_x, there_w])
                else:
                    loss.backward()
                    grads = [there_x.grad, there_w.grad]
                got = [g.cpu() for g in grads]
        assert dict(seen) == {"a": a, "b": b}
        assert got[0].equal(want_x.grad) and got[1].equal(want_w.grad)


def test_errors_are_raised_where_their_stream_is_waited_for():
    stream, own = strata.Stream(DEVICE), strata.accelerator.current_stream(DEVICE)
    there, table = strata.ones(4, device=DEVICE), strata.arange(6.0, device=DEVICE)
    wrong = strata.tensor([1, 9]).to(DEVICE)
    stream.wait_stream(own)
    with asked("fail_kernel", 1), stream:
        there.mul(2)
    own.synchronize()
    assert (there + 1).tolist() == [2] * 4
    with pytest.raises(RuntimeError, match="null: .*a kernel failed"):
        stream.synchronize()
    stream.synchronize()
    for waits in (stream, strata.accelerator):
        with stream:
            table[wrong]
        own.synchronize()
        with pytest.raises(IndexError, match=r"test_streams\.py:\d+"):
            waits.synchronize() if waits is stream else waits.synchronize(DEVICE)
        with stream:
            assert table[strata.tensor([1, 5]).to(DEVICE)].tolist() == [1, 5]


def test_blocking_raises_at_the_line():
    table, wrong = strata.arange(6.0, device=DEVICE), strata.tensor([1, 9]).to(DEVICE)
    with strata.debug.blocking():
        with pytest.raises(IndexError):
            table[wrong]
        with asked("fail_kernel", 1), pytest.raises(RuntimeError, match="a kernel failed"):
            table.mul(2)
        assert table.sum().item() == 15
    table[wrong]
    with pytest.raises(IndexError):
        strata.accelerator.synchronize(DEVICE)
    strata.debug.blocking(True)
    try:
        with pytest.raises(IndexError):
            table[wrong]
    finally:
        strata.debug.blocking(False)


def test_out_of_memory_names_owners_and_leaves_nothing():
    def step(size):
        x = strata.randn(size, 12).to(DEVICE)
        (x * weight + x).softmax(1).square().sum().backward()
        weight.grad = None

    weight = strata.randn(12, device=DEVICE, requires_grad=True)
    step(16)
    held = strata.ones(1 << 20, device=DEVICE)
    strata.accelerator.synchronize(DEVICE)
    before = strata.accelerator.memory_allocated(DEVICE)
    chooser, caught = random.Random(4), 0
    for _ in range(200):
        strata.accelerator.empty_cache(DEVICE)
        # The first fault gives the cache back, the second is the program's.
        with asked("fail_allocation", f"{chooser.randrange(1, 12)} {chooser.randrange(2)}"):
            try:
                step(64)
            except strata.OutOfMemoryError as error:
                caught += 1
                text = str(error)
                assert f"{1 << 22} bytes in 1 blocks from" in text and "test_streams.py:" in text
                error = None
        step(4)
        assert strata.accelerator.memory_allocated(DEVICE) == before
    assert caught > 20 and held.sum().item() == 1 << 20
    top = strata.accelerator.memory_owners(DEVICE)[0]
    assert top[:2] == (1 << 22, 1) and "test_streams.py:" in top[2]


def test_threads_with_streams_of_their_own():
    shared = strata.randn(50)
    there = shared.to(DEVICE)
    ready = strata.accelerator.current_stream(DEVICE).record_event()
    wrong = []

    def work(k):
        stream = strata.Stream(DEVICE)
        chooser = random.Random(k)
        with stream:
            stream.wait_event(ready)
            mine, want = there * k, shared * k
            for _ in range(20):
                if chooser.random() < 0.5:
                    mine, want = mine + there, want + shared
                else:
                    x, y = mine.detach().requires_grad_(), want.detach().requires_grad_()
                    x.sin().sum().backward()
                    y.sin().sum().backward()
                    mine, want = x.grad, y.grad
            stream.synchronize()
            if not mine.cpu().equal(want):
                wrong.append(k)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # raises what one of them does
    assert not wrong
