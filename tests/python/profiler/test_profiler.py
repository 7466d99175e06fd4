"""profile on real operators: rows, ranges, schedules, files."""

import gzip
import json

import pytest
import strata
from strata.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def work():
    x = strata.ones(3, requires_grad=True)
    y = x * 2 + 4
    y.backward(strata.ones(3))


def names(prof):
    return [e.key for e in prof.key_averages()]


def test_rows_of_forward_and_backward():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work()
    rows = {e.key: e for e in prof.key_averages()}
    assert {"aten::mul", "aten::add", "AddBackward0", "MulBackward0"} <= set(rows)
    assert rows["aten::mul"].count == 1 and rows["aten::ones"].count == 2
    nested = [e for e in prof.events() if e.cpu_parent is not None]
    # A pointwise derivative is one kernel.
    assert [(e.key, e.cpu_parent.key) for e in nested] == [("strata::mul_Scalar_grad_self", "MulBackward0")]
    outermost = sum(e.cpu_time_total for e in prof.events() if e.cpu_parent is None)
    assert prof.key_averages().self_cpu_time_total == pytest.approx(outermost)
    assert "MulBackward0" in prof.key_averages().table(sort_by="cpu_time_total")


def test_forward_is_linked_to_backward(tmp_path):
    with profile() as prof:
        work()
    prof.export_chrome_trace(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert len([e for e in trace if e["ph"] == "s"]) == len([e for e in trace if e["ph"] == "f"]) == 2


def test_record_function():
    @record_function("decorated")
    def f():
        with record_function("inside"):
            pass

    f()
    with profile() as prof, record_function("outer"):
        f()
        f()
    rows = {e.key: e for e in prof.key_averages() if e.is_user_annotation}
    assert {key: row.count for key, row in rows.items()} == {"outer": 1, "decorated": 2, "inside": 2}
    inside = next(e for e in prof.events() if e.key == "inside")
    assert inside.cpu_parent.key == "decorated" and inside.cpu_parent.cpu_parent.key == "outer"


def test_schedule_function():
    with pytest.warns(UserWarning, match="warmup"):
        assert schedule(wait=0, warmup=0, active=1)(0) is ProfilerAction.RECORD_AND_SAVE
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert "".join(plan(i).name[0] + plan(i).name[-1] for i in range(11)) == "NENEWPRDRENEWPRDRENENE"
    early = schedule(wait=5, warmup=1, active=1, skip_first_wait=1)
    assert early(0) is ProfilerAction.WARMUP
    with pytest.raises(AssertionError, match="active=0"):
        schedule(wait=0, warmup=1, active=0)


def test_schedule_records_its_steps():
    seen = []
    plan = schedule(wait=1, warmup=1, active=2)
    with profile(schedule=plan, on_trace_ready=lambda p: seen.append((p.step_num, names(p)))) as prof:
        for _ in range(8):
            work()
            prof.step()
    assert [step for step, _ in seen] == [4, 8]
    assert all("aten::mul" in row for _, row in seen)
    steps = [[name for name in row if name.startswith("ProfilerStep")] for _, row in seen]
    assert steps == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]


def test_a_cycle_cut_short_is_kept():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=1, active=5), on_trace_ready=lambda p: seen.append(names(p))) as prof:
        for _ in range(3):
            work()
            prof.step()
    assert len(seen) == 1 and "aten::mul" in seen[0]


def test_files(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(tmp_path / "logs", "me", use_gzip=True)) as prof:
        work()
    (file,) = (tmp_path / "logs").iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json.gz")
    assert json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    prof.export_chrome_trace(str(tmp_path / "plain.json"))


def test_refusals():
    with pytest.raises(RuntimeError, match="nothing is recorded yet"):
        profile().events()
    with profile(), pytest.raises(RuntimeError, match="another profile is recording"):
        profile().start()
    with pytest.raises(ValueError, match="activities must be values of ProfilerActivity"):
        profile(activities=["everything"])


def test_shapes_and_stacks_of_calls():
    def work():
        x = strata.ones(2, 3, requires_grad=True)
        for _ in range(2):
            strata.cat([x * 2, x]).sum().backward()
        return strata.ones(4) * 2

    with profile(record_shapes=True, with_stack=True) as prof:
        work()
    events = {e.name: e for e in reversed(prof.events())}
    assert events["aten::cat"].input_shapes == [[[2, 3], [2, 3]], []]
    assert events["aten::mul"].input_shapes == [[2, 3], []]
    assert events["aten::sum"].input_shapes[0] == [4, 3]
    line = events["aten::cat"].stack[0]
    assert line.startswith(__file__) and line.endswith(": work")
    muls = [e for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::mul"]
    assert [2, 3] in [e.input_shapes[0] for e in muls] and [4] in [e.input_shapes[0] for e in muls]
    assert len([e for e in prof.key_averages() if e.key == "aten::mul"]) == 1
    by_line = [e for e in prof.key_averages(group_by_stack_n=1) if e.key == "aten::cat"]
    assert len(by_line) == 1 and by_line[0].count == 2 and by_line[0].stack == [line]
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
    with profile() as prof:
        work()
    assert all(e.input_shapes == [] and e.stack == [] for e in prof.events())


def test_what_is_not_recorded_warns_once():
    with pytest.warns(UserWarning, match="profile_memory, with_flops") as seen:
        profile(profile_memory=True, with_flops=True, record_shapes=True, with_stack=True)
    assert len(seen) == 1


def test_the_older_form_of_profile():
    from strata.autograd import profiler as old

    with old.profile(False) as off:
        strata.ones(2).sin()
    assert not off.enabled
    with old.profile(use_cuda=False, record_shapes=True) as on:
        strata.ones(2).sin()
    assert any("sin" in e.key for e in on.key_averages())
    with old.emit_nvtx(False), old.emit_itt(enabled=False):
        pass
    with pytest.raises(NotImplementedError, match="marks for outer tools"), old.emit_nvtx():
        pass
