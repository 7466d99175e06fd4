"""Signals end long operators, each in a child process: what does not see them would hang, and the child's alarm ends it."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
import strata

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from child import in_child


class Stop(Exception):
    pass


def stopped(work):
    """Runs the work, which never ends by itself, and asks it to stop."""

    def stop(*_):
        raise Stop

    def judged():
        signal.signal(signal.SIGUSR1, stop)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        try:
            work()
        except Stop:
            return []
        return ["it ended by itself"]

    in_child(judged, "the operator")


ENDLESS = {
    "max": lambda: strata.zeros(1).expand(2**42).max(),
    "argmin": lambda: strata.zeros(1).expand(2**42).argmin(),
    "sort": lambda: [strata.sort(strata.zeros(1).expand(1 << 16, 1 << 10)) for _ in range(1000)],
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("threads", [1, 2])
def test_long_operators_see_signals(name, threads):
    def work():
        strata.set_num_threads(threads)
        ENDLESS[name]()

    stopped(work)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_sort_ends_before_its_results_are_written(threads):
    def stop(*_):
        raise Stop

    def judged():
        strata.set_num_threads(threads)
        signal.signal(signal.SIGALRM, stop)
        for bits in (22, 23, 24, 25):
            x = strata.randint(0, 1 << 62, (1 << bits,))
            values, places = strata.full_like(x, -1), strata.full_like(x, -1)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                strata.sort(x, out=(values, places))
                signal.pause()
            except Stop:
                if values[-1] == -1 and places[0] == -1:
                    return []
        return ["it wrote its results"]

    in_child(judged, "sort", seconds=120)


def test_an_error_of_a_worker_ends_the_operator():
    before = strata.get_num_threads()
    strata.set_num_threads(2)
    try:
        with pytest.raises(IndexError):
            strata.zeros(10)[strata.full((1 << 20,), 99)]
    finally:
        strata.set_num_threads(before)


def test_repeated_places_are_filled_once():
    x = strata.zeros(2, 1)
    assert x.expand(2, 2**60).fill_(3.0) is not None and x.tolist() == [[3.0], [3.0]]
    assert x.expand(2, 2**60).zero_() is not None and x.tolist() == [[0.0], [0.0]]
    for write in (lambda t: t.__setitem__(slice(None), 1.0), lambda t: t.__setitem__(0, 1.0), lambda t: t.add_(1)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write(x.expand(2, 3))
    x.expand(2, 3)[0, 1] = 5.0  # one element
    assert x.tolist() == [[5.0], [0.0]]
