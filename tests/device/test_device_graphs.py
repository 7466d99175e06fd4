"""Graphs of a device: what a compiled graph launched before is replayed, on the null device. It fails a replay whose graph was
told of memory that has been released since, whoever has the same handle now."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import devices
import pytest
import strata

DEVICE = devices.null()
PLUGIN = ctypes.CDLL(str(devices.plugin("null")))
for name in ("strata_null_replays", "strata_null_changes"):
    getattr(PLUGIN, name).restype = ctypes.c_int64


def replays() -> int:
    return PLUGIN.strata_null_replays()


def changes() -> int:
    return PLUGIN.strata_null_changes()


@contextlib.contextmanager
def asked(what: str, value: object):
    assert PLUGIN.strata_null_control(what.encode(), str(value).encode()) == 0
    try:
        yield
    finally:
        PLUGIN.strata_null_control(what.encode(), b"0")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    strata.accelerator.synchronize(DEVICE)


def chain(x, w):
    """Several launches, for its rows have other lengths."""
    y = (x * w).softmax(-1)
    z = (y.t().contiguous() + 1).softmax(-1)
    return ((z * z).sum() * 2).exp() + y.sum(0).exp().std()


def compiled(f, *given):
    there = [x.to(DEVICE) for x in given]
    return strata.graph(f, *there).compile(), there


def warmed(f, *given):
    """The compiled graph, so often called that it is replayed, and its inputs."""
    c, there = compiled(f, *given)
    for _ in range(3):
        c(*there)
    before = replays()
    c(*there)
    assert replays() > before
    return c, there


def pair():
    strata.manual_seed(3)
    return strata.randn(40, 70), strata.randn(70)


def test_the_second_run_makes_a_graph_and_later_ones_replay_it():
    x, w = pair()
    c, there = compiled(chain, x, w)
    before, want = replays(), chain(x, w)
    c(*there)
    assert replays() == before
    stats = strata.cache.stats(DEVICE)
    for run in range(4):
        assert c(*there).cpu().equal(want)
        assert replays() == before + run + 1
    after = strata.cache.stats(DEVICE)
    assert after["replayed"] - stats["replayed"] == after["launches"] - stats["launches"] >= 3 * 4


def test_a_run_with_the_same_memory_changes_nothing_of_the_graph():
    x, w = pair()
    c, there = warmed(chain, x, w)
    before = changes()
    for _ in range(3):
        c(*there)
    assert changes() == before


def test_other_inputs_and_results_that_live_on():
    x, w = pair()
    c, _ = warmed(chain, x, w)
    given = [(x * k, w + k) for k in range(6)]
    there = [[t.to(DEVICE) for t in pair] for pair in given]
    before = replays()
    results = [c(*pair) for pair in there] + [c(*pair) for pair in reversed(there)]
    assert replays() == before + 12
    want = [chain(*pair) for pair in given]
    assert all(a.cpu().equal(b) for a, b in zip(results, want + want[::-1], strict=True))


def test_memory_that_is_released_and_given_again_under_the_same_handle():
    x, w = pair()
    c, there = warmed(chain, x, w)
    want = chain(x, w).item()
    for round in range(4):
        handles = changes()
        # Everything goes back to the plugin; the next owner gets the same addresses in another order.
        del there
        gc.collect()
        strata.accelerator.synchronize(DEVICE)
        strata.accelerator.empty_cache(DEVICE)
        others = [strata.full((70,), float(round), device=DEVICE) for _ in range(round)]
        there = [x.to(DEVICE), w.to(DEVICE)]
        assert c(*there).item() == want
        assert changes() > handles
        del others


def test_a_cache_that_is_emptied_while_inputs_live():
    x, w = pair()
    c, there = warmed(chain, x, w)
    for _ in range(3):
        strata.accelerator.synchronize(DEVICE)
        strata.accelerator.empty_cache(DEVICE)
        before = replays()
        assert c(*there).item() == chain(x, w).item() and replays() == before + 1


def test_numbers_that_change():
    x, w = pair()

    def f(x, w):
        y = strata.nn.functional.dropout(x * w, 0.4).softmax(-1)
        z = (y.t().contiguous() + strata.rand_like(y).t()).softmax(-1)
        return strata.nn.functional.dropout(z, 0.2).sum(0)

    c, there = warmed(f, x, w)
    strata.manual_seed(5)
    want = [f(x, w) for _ in range(4)]
    strata.manual_seed(5)
    before = replays()
    got = [c(*there) for _ in range(4)]
    assert replays() == before + 4
    assert all(a.cpu().equal(b) for a, b in zip(got, want, strict=True))
    assert not want[0].equal(want[1])


def test_writes_and_gradients():
    x, w = pair()

    def steps(device):
        a = x.clone().to(device).requires_grad_()
        state = w.clone().to(device)
        run = strata.graph(written, a, state.clone()).compile() if device != "cpu" else written
        out = []
        for _ in range(6):
            loss = run(a, state)
            (grad,) = strata.autograd.grad(loss, [a])
            with strata.no_grad():
                a -= 0.1 * grad
            out += [loss.detach().cpu(), grad.cpu(), state.cpu().clone()]
        return out

    def written(a, state):
        with strata.no_grad():
            state.mul_(0.5).add_(a.detach().sum(0), alpha=0.01)
        return chain(a, state.detach().clone())

    before = replays()
    assert all(a.equal(b) for a, b in zip(steps("cpu"), steps(DEVICE), strict=True))
    assert replays() > before


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_kernel_that_fails_in_the_middle(number):
    x, w = pair()
    c, there = warmed(chain, x, w)
    strata.accelerator.synchronize(DEVICE)
    before = replays()
    with asked("fail_kernel", number):
        c(*there)
        with pytest.raises(RuntimeError, match="a kernel failed"):
            strata.accelerator.synchronize(DEVICE)
    assert c(*there).item() == chain(x, w).item() and replays() == before + 2


def test_an_index_outside_in_a_replay_names_the_operator():
    def f(x, i):
        y = x.gather(1, i).softmax(-1)
        return (y.t().contiguous() + 1).softmax(-1).gather(0, i.t()) + y.sum()

    x, i = strata.randn(6, 50), strata.zeros(6, 50, dtype=strata.int64)
    i[:, 3] = 4
    c, (there, inside) = warmed(f, x, i)
    outside = inside.clone()
    outside[2, 2] = 99
    for _ in range(2):
        before = replays()
        c(there, outside)
        assert replays() > before
        with pytest.raises(RuntimeError, match=r"gather.*index out of range"):
            strata.accelerator.synchronize(DEVICE)
        assert c(there, inside).cpu().equal(f(x, i))


def test_a_graph_that_the_device_refuses_is_launched_one_by_one():
    x, w = pair()
    c, there = compiled(chain, x, w)
    c(*there)
    before = replays()
    with asked("fail_graph", 1):
        assert c(*there).item() == chain(x, w).item()
    assert c(*there).item() == chain(x, w).item() and replays() == before
    c, there = warmed(chain, x, w)
    with asked("fail_graph", 1):
        assert c(*there).item() == chain(x, w).item()


def test_no_memory_in_a_run():
    x, w = pair()
    c, there = warmed(chain, x, w)
    strata.accelerator.synchronize(DEVICE)
    live = strata.accelerator.memory_allocated(DEVICE)
    for number in (1, 2):
        strata.accelerator.empty_cache(DEVICE)
        with asked("fail_allocation", f"{number} 5"), pytest.raises(strata.OutOfMemoryError):
            for _ in range(4):
                strata.accelerator.empty_cache(DEVICE)
                c(*there)
        gc.collect()
        assert strata.accelerator.memory_allocated(DEVICE) == live
        assert c(*there).item() == chain(x, w).item()


def test_two_queues():
    x, w = pair()
    c, there = warmed(chain, x, w)
    streams = [strata.accelerator.current_stream(DEVICE), strata.Stream(DEVICE)]
    streams[1].wait_stream(streams[0])
    before, results = replays(), []
    with asked("delay_us", 500):
        for run in range(8):
            with streams[run % 2]:
                results.append(c(*there) + run)
    for s in streams:
        s.synchronize()
    assert replays() == before + 8
    assert all(r.cpu().equal(chain(x, w) + run) for run, r in enumerate(results))


def test_a_queue_that_waits_for_a_replay_of_another():
    x, w = pair()
    c, there = warmed(chain, x, w)
    stream, own = strata.Stream(DEVICE), strata.accelerator.current_stream(DEVICE)
    for _ in range(3):
        with asked("delay_us", 20_000):
            made = c(*there)
            stream.wait_event(own.record_event())
            with stream:
                later = made * 3
        stream.synchronize()
        assert later.item() == (chain(x, w) * 3).item()


def test_threads_that_run_one_graph():
    x, w = pair()
    c, there = warmed(chain, x, w)
    want, wrong = chain(x, w).item(), []

    def run(k):
        with strata.Stream(DEVICE) if k % 2 else contextlib.nullcontext():
            for _ in range(20):
                if c(*there).item() != want:
                    wrong.append(k)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))  # raises what one of them does
    assert not wrong


def test_blocking_launches_one_by_one():
    x, w = pair()
    c, there = warmed(chain, x, w)
    before = replays()
    with strata.debug.blocking():
        assert c(*there).item() == chain(x, w).item()
        with asked("fail_kernel", 2), pytest.raises(RuntimeError, match="a kernel failed"):
            c(*there)
    assert replays() == before


def test_what_runs_whole_and_what_the_host_computes_in_between():
    x, w = pair()

    def f(x, w):
        y = (x * w).softmax(-1)
        order = y.sum(0).sort()[1]
        return y.index_select(1, order).t().contiguous().softmax(-1).sum(0).exp() + y.std(1)

    c, there = warmed(f, x, w)
    for k in range(3):
        assert c(there[0] + k, there[1]).cpu().equal(f(x + k, w))


def test_an_operator_of_ones_own_that_works_on_another_thread():
    """It finds what was launched before it in the queue."""

    @strata.library.custom_op("graphs::elsewhere", mutates_args=())
    def elsewhere(x: strata.Tensor) -> strata.Tensor:
        made = []
        t = threading.Thread(target=lambda: made.append(x * 2))
        t.start(), t.join()
        return made[0]

    @elsewhere.register_fake
    def _(x):
        return strata.empty_like(x)

    def f(x, w):
        y = (x * w).softmax(-1)
        z = (y.t().contiguous() + 1).softmax(-1)
        return elsewhere(z.t().contiguous().softmax(-1)).t().contiguous().softmax(-1)

    x, w = pair()
    want = f(x, w)
    c, there = compiled(f, x, w)
    for _ in range(4):
        strata.accelerator.empty_cache(DEVICE)
        assert c(*there).cpu().equal(want)


def test_a_graph_that_goes_while_its_replay_is_under_way():
    x, w = pair()
    c, there = warmed(chain, x, w)
    with asked("delay_us", 3000):
        made = c(*there)
        del c
        gc.collect()
    assert made.item() == chain(x, w).item()


PROGRAM = """
import ctypes, sys, strata
sys.path.insert(0, sys.argv[1])
import test_device_graphs as t
x, w = t.pair()
c, there = t.compiled(t.chain, x, w)
for _ in range(4):
    assert c(*there).cpu().equal(t.chain(x, w))
assert t.replays() == 0 and strata.cache.stats(t.DEVICE)["replayed"] == 0
"""


def test_a_device_without_graphs_launches_one_by_one():
    env = dict(os.environ, STRATA_NULL_WITHOUT="graphs")
    subprocess.run([sys.executable, "-c", PROGRAM, os.path.dirname(__file__)], env=env, check=True)
