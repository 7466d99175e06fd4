"""What the profiler records: operators and backward nodes, nested and linked."""

import threading

import pytest
import strata as torch
from strata import _C


def record(work):
    _C._profiler_start()
    try:
        work()
    finally:
        events = _C._profiler_stop()
    return events


def test_snippet_of_mul_and_add():
    x = torch.ones(3, requires_grad=True)

    def work():
        y = x * 2 + 4
        y.backward(torch.ones(3))

    events = record(work)
    names = [e[0] for e in events]
    for name in ("aten::mul", "aten::add", "AddBackward0", "MulBackward0"):
        assert name in names
    forward = next(e for e in events if e[0] == "aten::mul")
    backward = next(e for e in events if e[0] == "MulBackward0")
    assert forward[4] == backward[4] >= 0 and forward[5] == 0 and backward[5] == 1
    nested = [e for e in events if e[0] == "aten::mul" and backward[1] <= e[1] and e[2] <= backward[2]]
    assert all(e[2] >= e[1] for e in events) and len(nested) <= 1
    table = torch.profiler.EventList.from_raw(events).key_averages()
    total = sum(row.self_cpu_time_total for row in table)
    spent = sum((e[2] - e[1]) / 1e3 for e in events if not any(o is not e and o[1] <= e[1] and e[2] <= o[2] for o in events))
    assert total == pytest.approx(spent, rel=0.02)


def test_calls_that_record_nothing_have_no_number():
    events = record(lambda: torch.ones(2).exp())
    assert all(e[4] == -1 for e in events)


def test_threads_have_their_own_events():
    x = torch.ones(3)

    def work():
        threads = [threading.Thread(target=lambda: [x.exp() for _ in range(10)]) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        x.exp()

    events = [e for e in record(work) if e[0] == "aten::exp"]
    assert len(events) == 31 and len({e[3] for e in events}) == 4
    assert threading.get_native_id() in {e[3] for e in events}


def test_start_and_stop_are_paired():
    with pytest.raises(RuntimeError, match="not recording"):
        _C._profiler_stop()
    _C._profiler_start()
    with pytest.raises(RuntimeError, match="recording already"):
        _C._profiler_start()
    assert _C._profiler_enabled() and _C._profiler_stop() == []


def test_errors_close_their_events():
    def work():
        with pytest.raises(RuntimeError):
            torch.ones(2) + torch.ones(3)
        torch.ones(2).exp()

    events = record(work)
    add = next(e for e in events if e[0] == "aten::add")
    exp = next(e for e in events if e[0] == "aten::exp")
    assert exp[1] >= add[2]
