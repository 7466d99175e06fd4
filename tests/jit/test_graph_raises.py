"""Compiled graphs that raise, or run for long: what they wrote is known, signals and other threads are served."""

from __future__ import annotations

import signal
import threading
import time

import pytest
import strata
from strata._higher_order_ops import while_loop


def step(x, index, table):
    x.add_(1)
    return table[index]


@pytest.mark.parametrize("compiled", [False, True])
def test_what_was_written_before_an_error_counts_as_written(compiled):
    f = strata.compile(step) if compiled else step
    table, x, w = strata.arange(3.0), strata.zeros(4), strata.ones(4, requires_grad=True)
    f(strata.zeros(4), strata.tensor([0, 1]), table)
    y = (w * x).sum()
    with pytest.raises(IndexError):
        f(x, strata.tensor([0, 7]), table)
    assert x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_loop_that_never_ends_can_be_interrupted():
    f = strata.compile(lambda x: while_loop(lambda i, x: x.sum() > -1, lambda i, x: (i + 1, x * 0.5 + 0.5), (strata.tensor(0), x)))

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    turns = 0
    over = threading.Event()

    def count():
        nonlocal turns
        while not over.is_set():
            turns += 1
            time.sleep(0.01)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        with pytest.raises(KeyboardInterrupt):
            f(strata.ones(4))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        thread.join()
    assert turns > 10


@pytest.mark.parametrize("dtype", [strata.float16, strata.bfloat16, strata.int32, strata.uint8], ids=str)
def test_numbers_that_do_not_fit_raise_as_eager_does(dtype):
    x = strata.ones(4, dtype=dtype)
    for f in (lambda x: strata.add(x, x, alpha=1e39 if dtype.is_floating_point else 2**53 + 1), lambda x: strata.addcmul(x, x, x, value=1e39 if dtype.is_floating_point else 2**40)):
        errors = []
        for call in (f, lambda x, f=f: strata.graph(f, x).compile()(x), lambda x, f=f: strata.graph(f, x).run(x)):
            try:
                call(x)
            except RuntimeError as error:
                errors.append(str(error).partition(" (in")[0])
            else:
                errors.append(None)
        assert errors[0] == errors[1] == errors[2]
