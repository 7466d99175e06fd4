"""What a device may leave out of its table: the null device without some parts, or with nothing but what every device has. Tests
that ask for none of these parts give the same there, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import devices  # noqa: F401  the build is there
import pytest

HERE = Path(__file__).parent

STREAMS = [
    "test_streams.py::test_programs_on_several_streams_have_one_streams_bits",
    "test_streams.py::test_streams_are_values_and_contexts",
    "test_streams.py::test_memory_that_another_stream_uses_stays",
    "test_streams.py::test_backward_runs_on_the_streams_of_the_forward_pass",
    "test_streams.py::test_errors_are_raised_where_their_stream_is_waited_for",
    "test_streams.py::test_blocking_raises_at_the_line",
    "test_streams.py::test_threads_with_streams_of_their_own",
]

# Without events a copy that should not wait does.
PINNED = [
    "test_pinned.py::test_pinned_memory_may_be_freed_while_a_copy_is_under_way",
    "test_pinned.py::test_a_copy_that_waits_has_been_done_with_pinned_memory",
    "test_pinned.py::test_other_dtypes_and_orders_wait",
    "test_pinned.py::test_between_devices",
]
COMPILED = [
    "test_compiled.py::test_rows",
    "test_compiled.py::test_rows_written_where_they_are_read",
    "test_compiled.py::test_draws_make_their_words_in_the_kernel",
    "test_compiled.py::test_layouts_and_views",
    "test_compiled.py::test_an_optimisers_step_over_many_tensors",
    "test_compiled.py::test_an_index_outside_is_told_by_operator_and_leaves_the_device_usable",
]


@pytest.mark.parametrize(
    ("without", "tests"),
    [
        ("events", [*STREAMS, *PINNED, "test_device_graphs.py"]),
        ("pinned peers", [*STREAMS, "test_null.py::test_results_lie_where_they_are_asked_for", "test_null.py::test_a_gradient_lies_where_its_tensor_does"]),
        ("groups identity events pinned peers library graphs", [*STREAMS, *COMPILED]),
    ],
)
def test_parts_that_are_not_there(without, tests):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / t) for t in tests)],
        env=dict(os.environ, STRATA_NULL_WITHOUT=without),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


EVENTS = """
import strata, sys
sys.path.insert(0, sys.argv[1])
import devices
device = devices.null()
first, last = strata.Event(enable_timing=True), strata.Event(enable_timing=True)
x = strata.randn(1000, device=device)
first.record()
for _ in range(20):
    x = x * 1.5
last.record()
# The host has waited where they were recorded.
assert first.query() and last.query() and strata.accelerator.current_stream(device).query()
assert first.elapsed_time(last) > 0
stream = strata.Stream(device)
with stream:
    stream.wait_event(last)
    y = x + 1
strata.accelerator.current_stream(device).wait_stream(stream)
assert (y - 1).cpu().equal((x.cpu() + 1) - 1)
# What fails before an event is recorded is told by whoever waits.
i = strata.tensor([1, 5000]).to(device)
x[i]
last.record()
try:
    strata.accelerator.synchronize(device)
except IndexError:
    print("told")
"""


def test_events_of_a_device_that_has_none():
    env = dict(os.environ, STRATA_NULL_WITHOUT="events")
    run = subprocess.run([sys.executable, "-c", EVENTS, str(HERE)], env=env, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.strip() == "told", run.stderr
