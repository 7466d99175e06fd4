"""Nesting, sums, table and trace of given raw events."""

import json
import random

import pytest
from strata._profiler_events import BACKWARD, OPERATOR, USER, EventList

# y = x * 2 + 4; y.backward(g), with a mul inside MulBackward0; times in ns.
RAW = [
    ("mul", 1000, 3000, 7, 0, OPERATOR),
    ("add", 4000, 5000, 7, 1, OPERATOR),
    ("AddBackward0", 10000, 11000, 8, 1, BACKWARD),
    ("MulBackward0", 12000, 18000, 8, 0, BACKWARD),
    ("mul", 13000, 17000, 8, -1, OPERATOR),
]


def by_name(events):
    return {e.key: e for e in events.key_averages()}


def test_nested_time_is_not_counted_twice():
    events = EventList.from_raw(RAW)
    rows = by_name(events)
    assert set(rows) == {"mul", "add", "AddBackward0", "MulBackward0"}
    assert (rows["mul"].count, rows["mul"].cpu_time_total, rows["mul"].self_cpu_time_total) == (2, 6.0, 6.0)
    assert (rows["MulBackward0"].cpu_time_total, rows["MulBackward0"].self_cpu_time_total) == (6.0, 2.0)
    assert events.self_cpu_time_total == events.key_averages().self_cpu_time_total == 2.0 + 1.0 + 1.0 + 6.0


def test_an_operator_within_itself_counts_once():
    rows = by_name(EventList.from_raw([("f", 0, 100_000, 1, -1, 0), ("f", 10_000, 60_000, 1, -1, 0)]))
    assert (rows["f"].count, rows["f"].cpu_time_total, rows["f"].self_cpu_time_total) == (2, 100.0, 100.0)


def test_parents_and_children():
    raw = [
        ("inner", 10, 20, 1, -1, 0),
        ("outer", 0, 100, 1, -1, 0),
        ("together", 0, 50, 1, -1, 0),
        ("other thread", 5, 30, 2, -1, 0),
        ("next", 100, 120, 1, -1, 0),
    ]
    events = {e.name: e for e in EventList.from_raw(raw)}
    assert events["together"].cpu_parent is events["outer"]
    assert events["inner"].cpu_parent is events["together"]
    assert events["next"].cpu_parent is events["other thread"].cpu_parent is events["outer"].cpu_parent is None


def test_self_times_add_up_to_the_span_of_each_thread():
    rng = random.Random(1)
    raw = []

    def fill(start, end, thread, depth):
        while start < end:
            stop = rng.randint(start + 1, end)
            raw.append((f"op{rng.randrange(5)}", start, stop, thread, -1, OPERATOR))
            if depth and stop - start > 10:
                fill(start + 1, stop - 1, thread, depth - 1)
            start = stop

    fill(0, 50_000, 1, 3)
    fill(0, 30_000, 2, 3)
    rng.shuffle(raw)
    events = EventList.from_raw(raw)
    assert sum(e.self_cpu_time_total for e in events) == pytest.approx(80.0)
    assert all(e.self_cpu_time_total >= 0 for e in events)


def test_table():
    table = EventList.from_raw(RAW).key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    rule = "-" * 16 + ("  " + "-" * 12) * 6 + "  "
    assert table.split("\n") == [
        rule,
        "            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  ",
        rule,
        "             mul        60.00%       6.000us        60.00%       6.000us       3.000us             2  ",
        "    MulBackward0        20.00%       2.000us        60.00%       6.000us       6.000us             1  ",
        rule,
        "Self CPU time total: 10.000us",
        "",
    ]


def test_table_options():
    events = EventList.from_raw(RAW)
    assert "Self CPU time total: 0.010ms" in events.table(time_unit="ms")
    assert events.table(header="Title").split("\n")[1] == "Title"
    top = events.table(top_level_events_only=True)
    assert top.count("mul ") == 1 and "MulBackward0" in top
    assert "MulBack..." in events.table(max_name_column_width=10).replace("MulB...", "MulBack...")
    assert EventList().table() == ""
    assert str(events.key_averages()) == events.key_averages().table()
    assert events.key_averages(group_by_input_shapes=True, group_by_stack_n=2).table() == events.key_averages().table()


def test_trace(tmp_path):
    path = tmp_path / "trace.json"
    EventList.from_raw([*RAW, ("mine", 500, 6000, 7, -1, USER)]).export_chrome_trace(path)
    trace = json.loads(path.read_text())["traceEvents"]
    runs = [e for e in trace if e["ph"] == "X"]
    assert {e["name"] for e in runs} == {"mine", "mul", "add", "AddBackward0", "MulBackward0"}
    assert next(e for e in runs if e["name"] == "mine")["cat"] == "user_annotation"
    first = next(e for e in runs if e["name"] == "add")
    assert (first["ts"], first["dur"], first["tid"]) == (4.0, 1.0, 7)
    starts = {e["id"]: e["ts"] for e in trace if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in trace if e["ph"] == "f"}
    assert sorted((starts[i], ends[i]) for i in starts) == [(1.0, 12.0), (4.0, 10.0)]
