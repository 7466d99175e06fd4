"""Sixteen threads compile at once: functions of their own, one function for all, whole steps. Every result has eager's bits.

`./run sanitize tsan tests/bytecode/test_threads_compile.py` looks for races meanwhile.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import strata
from strata import nn

THREADS = 16


def own(k: int):
    """A function that no other thread has: its constant is in the text of its kernel."""

    def f(x, y):
        z = strata.sin(x) * (k + 2) + strata.cos(y)
        if x.shape[0] > 3:
            z = z.cumsum(0) / (k + 1)
        return (z * z).sum(0), z

    return f


def step(model, optimizer, x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def trained(k: int, compiled: bool) -> list[list]:
    generator = strata.Generator().manual_seed(k)
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 2))
    with strata.no_grad():
        for p in model.parameters():
            p.copy_(strata.randn(p.shape, generator=generator))
    optimizer = strata.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run, x = strata.compile(step) if compiled else step, strata.randn(5, 6, generator=generator)
    losses = [run(model, optimizer, x).item() for _ in range(3)]
    return [losses] + [p.tolist() for p in model.parameters()]


def gradients(f, x, y) -> list[list]:
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    total, z = f(x, y)
    (total.sum() + z.sum()).backward()
    return [total.tolist(), z.tolist(), x.grad.tolist(), y.grad.tolist()]


def together(work) -> list:
    """What `work(k)` returned that was not empty, of sixteen threads that begin at once; raises what one of them raised."""
    ready = threading.Barrier(THREADS)

    def begin(k: int):
        ready.wait()
        return work(k)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            return [found for found in pool.map(begin, range(THREADS)) if found]
    finally:
        sys.setswitchinterval(before)


def operands(k: int) -> list[tuple]:
    generator = strata.Generator().manual_seed(100 + k)
    return [tuple(strata.randn(n, 3, generator=generator) for _ in range(2)) for n in (4, 2, 5, 1, 7)]


def test_functions_of_their_own():
    def work(k: int):
        f = own(k)
        compiled = strata.compile(f)
        return [(k, i) for i, xy in enumerate(operands(k) * 2) if gradients(compiled, *xy) != gradients(f, *xy)]

    assert not together(work)


def test_one_function_for_all():
    f = own(100)
    compiled = strata.compile(f)

    def work(k: int):
        return [(k, i) for i, xy in enumerate(operands(k) * 2) if gradients(compiled, *xy) != gradients(f, *xy)]

    assert not together(work)


def test_whole_steps():
    assert not together(lambda k: trained(k, compiled=True) != trained(k, compiled=False))


def test_beside_reset():
    """Compiled functions are forgotten while others are compiled and run."""

    def work(k: int):
        f, wrong = own(200 + k), []
        compiled = strata.compile(f)
        for i, xy in enumerate(operands(k)):
            if k % 4 == 0:
                strata.compiler.reset()
            wrong += [(k, i)] if gradients(compiled, *xy) != gradients(f, *xy) else []
        return wrong

    assert not together(work)


def test_many_of_one_code():
    """Each compiles the same function anew: how much is made of a code is counted while others make more of it."""

    def work(k: int):
        for xy in operands(k) * 3:
            compiled = strata.compile(own(300))
            if gradients(compiled, *xy) != gradients(own(300), *xy):
                return k

    assert not together(work)


def test_a_backend_that_calls_what_another_thread_compiles():
    begun = threading.Barrier(2)
    other = strata.compile(lambda x: x * 3)

    def backend(gm, inputs):
        begun.wait()
        time.sleep(0.2)
        other(strata.ones(4))
        return gm

    f = strata.compile(lambda x: x + 1, backend=backend)
    threads = [threading.Thread(target=f, args=(strata.ones(3),), daemon=True)]
    threads[0].start()
    begun.wait()
    threads.append(threading.Thread(target=other, args=(strata.ones(3),), daemon=True))
    threads[1].start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_child_forked_while_others_compile_compiles():
    over = threading.Event()

    def work():
        k = 0
        while not over.is_set():
            strata.compile(own(k % 7))(strata.ones(2 + k % 5, 3), strata.ones(2 + k % 5, 3))
            k += 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for k in range(10):
            child = os.fork()
            if child == 0:
                total, z = strata.compile(lambda x, k=k: (x.sum(0) + k, x * k))(strata.ones(2, 3))
                os._exit(0 if total.tolist() == [2.0 + k] * 3 and z.tolist() == [[float(k)] * 3] * 2 else 1)
            until = time.monotonic() + 60
            ended, status = 0, 0
            while not ended and time.monotonic() < until:
                ended, status = os.waitpid(child, os.WNOHANG)
                time.sleep(0.005)
            if not ended:
                os.kill(child, 9)
                os.waitpid(child, 0)
            assert ended and status == 0
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_functions_of_equal_text_are_counted_apart():
    graphs, kept = [], []

    def backend(gm, inputs):
        graphs.append(1)
        return gm

    for k in range(300):
        space = {"K": k}
        exec("def f(x): return x * 2 + K", space)
        kept.append(strata.compile(space["f"], backend=backend))
        assert kept[-1](strata.ones(2)).tolist() == [2.0 + k] * 2
    assert len(graphs) == 300


def draws_while(work) -> int:
    """How many of 300 draws differ while another thread does something again and again."""
    ended, failed = threading.Event(), []

    def again():
        try:
            while not ended.is_set():
                work()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    other = threading.Thread(target=again)
    other.start()
    found = {tuple(strata.randn(20000)[:4].tolist()) for _ in range(300)}
    ended.set()
    other.join()
    assert not failed
    return len(found)


def test_a_capture_takes_no_other_threads_draws_back():
    x = strata.ones(3)
    assert draws_while(lambda: strata.compile(lambda x: x * 2 + strata.rand(3))(x)) == 300


def test_a_call_that_fits_no_value_takes_no_other_threads_draws_back():
    @strata.compile
    def step(x):
        noise = strata.rand(3)
        return x * 2 if noise.sum().item() > 1.5 else x - noise

    x = strata.ones(3)
    assert draws_while(lambda: step(x)) == 300


def test_a_call_that_fits_no_value_draws_what_eager_draws():
    def step(x):
        noise = strata.rand(3)
        return x * 2 + strata.rand(3) if noise.sum().item() > 1.5 else x - noise

    x, compiled = strata.ones(3), strata.compile(step)
    strata.manual_seed(5)
    want = [step(x) for _ in range(20)]
    strata.manual_seed(5)
    assert all(strata.equal(compiled(x), w) for w in want)
