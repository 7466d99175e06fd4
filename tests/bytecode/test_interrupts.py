"""Captures that a signal's handler, an exception from outside or the end of the stack interrupts: afterwards the thread is as it was."""

import gc
import signal
import sys
import threading

import pytest
import strata
from strata import _capture

X = strata.ones(3)
PLACES = [
    "Tracer.__init__", "Library.__init__", "GuardList.add", "GuardList.compile", "Region.__init__", "Region.stop", "Region.end", "Tracer.run", "Tracer.stop",
    "Tracer.let_go", "Tracer.load", "Emitter.body", "Compiled.attempt", "ThreadState.restore", "begin", "end", "abandon",
    "Capture.__init__", "Table.add", "callable_of",
]  # fmt: skip


class Asked(strata.Tensor):
    count = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.count += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def at(name, call, raises):
    """`call`, in which raises() is called where strata's function of that name begins for the first time."""

    def began(frame, event, argument):
        if event == "call" and frame.f_code.co_qualname == name and "strata" in frame.f_code.co_filename:
            sys.setprofile(None)
            raises()

    sys.setprofile(began)
    try:
        return call()
    finally:
        sys.setprofile(None)


def interrupt():
    raise KeyboardInterrupt


def check_thread():
    assert (strata.ones(2) + 1).tolist() == [2.0, 2.0] and _capture.current() is None
    assert strata.is_grad_enabled() and not strata.is_autocast_enabled("cpu") and gc.isenabled()
    Asked.count = 0
    strata.ones(2).as_subclass(Asked) + 1
    assert Asked.count == 1
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        return gm.forward

    assert strata.compile(lambda x: x * 5 - 1, backend=backend)(X).tolist() == [4.0] * 3 and len(seen) == 1
    p = strata.ones(2, requires_grad=True)
    p.sum().backward()
    strata.optim.Adam([p]).step()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("place", PLACES)
def test_keyboard_interrupts(place, dynamic):
    compiled = strata.compile(lambda x: strata.dropout(x, 0.5, False) * 2 + 1, dynamic=dynamic)
    state = strata.get_rng_state()
    for _ in range(2):
        with strata.no_grad() if dynamic else strata.enable_grad():
            try:
                at(place, lambda: compiled(X), interrupt)
            except KeyboardInterrupt:
                pass
            assert strata.is_grad_enabled() is not dynamic
        check_thread()
        assert strata.equal(strata.get_rng_state(), state)
    assert compiled(X).tolist() == [3.0] * 3 and compiled(strata.ones(4)).tolist() == [3.0] * 4


@pytest.mark.parametrize("place", ["GuardList.add", "Tracer.load", "Tracer.run", "Emitter.body", "Region.end"])
def test_what_a_handler_raises_is_raised(place):
    def handler(number, frame):
        raise TimeoutError("late")

    def f(x):
        try:
            return len([x]) + x.sin()
        except TimeoutError:
            return x * 0

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        compiled = strata.compile(f)
        try:
            found = at(place, lambda: compiled(X), lambda: signal.raise_signal(signal.SIGUSR1))
        except TimeoutError as error:
            found = str(error)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found == "late"
    assert strata.equal(compiled(X), f(X)) and not compiled._strata_compiled.breaks


@pytest.mark.parametrize("place", ["Frame.covered", "Frame.step", "Plainly.plainly", "Decoded.catches"])
@pytest.mark.parametrize("skip", [0, 1, 2, 3, 4, 5, 9, 30, 55])
def test_finally_runs_between_stretches(place, skip):
    said, lock = [], threading.Lock()

    def f(x):
        said.append("in")
        try:
            with lock:
                y = x * 2
                for _ in range(4):
                    if y.sum() < 0:
                        y = y - 1
        except TimeoutError:
            said.append("caught")
            raise
        finally:
            said.append("out")
        return y

    compiled = strata.compile(f)
    assert compiled(X).tolist() == [2.0] * 3 and said == ["in", "out"]
    said.clear()
    turns = iter(range(1000))

    def began(frame, event, argument):
        if event == "call" and frame.f_code.co_qualname == place and "strata" in frame.f_code.co_filename and said and next(turns) >= skip:
            sys.setprofile(None)
            raise TimeoutError

    sys.setprofile(began)
    try:
        compiled(X)
    except TimeoutError:
        pass
    finally:
        sys.setprofile(None)
    assert said in (["in", "out"], ["in", "caught", "out"])
    assert not lock.locked()


def test_near_the_end_of_the_stack():
    def deep(n, call):
        return call() if n == 0 else deep(n - 1, call)

    here = len(list(iter_frames()))
    for n in range(sys.getrecursionlimit() - here - 80, sys.getrecursionlimit() - here):
        compiled = strata.compile(lambda x: x * 2 + 1)
        try:
            deep(n, lambda compiled=compiled: compiled(X))
        except RecursionError:
            pass
        assert (strata.ones(2) + 1).tolist() == [2.0, 2.0]
        assert compiled(X).tolist() == [3.0] * 3
    check_thread()


def test_a_function_whose_captures_always_end_there_runs_as_it_is(monkeypatch):
    from strata._bytecode import entry

    tried = []

    def attempt(self, *args):
        tried.append(1)
        raise RecursionError

    monkeypatch.setattr(entry.Compiled, "attempt", attempt)
    compiled = strata.compile(lambda x: x * 2 + 1)
    with pytest.warns(UserWarning, match="runs as it is"):
        for _ in range(20):
            assert compiled(X).tolist() == [3.0] * 3
    assert len(tried) == entry.MOST_OVERFLOWS
    monkeypatch.undo()
    check_thread()


def iter_frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back
