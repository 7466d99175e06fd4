"""profile: what ran when, and how long it took.

with strata.profiler.profile() as prof:
    train_step()
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
"""

import threading
import time
import warnings
from contextlib import ContextDecorator
from enum import Enum

from strata import _C, _device_words
from strata._profiler_events import USER, EventList, FunctionEvent, FunctionEventAvg

__path__: list[str] = []  # PyTorch's files of it are found elsewhere (_absent.py)
__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


# Where events come from: of the names only CPU is recorded, the others may be asked for.
ProfilerActivity = Enum("ProfilerActivity", ["CPU", *_device_words.activities(), "PrivateUse1"], start=0, module=__name__)


def supported_activities():
    """The activities that can be recorded here."""
    return {ProfilerActivity.CPU}


class ProfilerAction(Enum):
    """What a schedule does with a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule: skip `skip_first` steps, then in turn `wait`, `warmup` and record `active` steps, `repeat` times
    (0: for ever). With `skip_first_wait` the first cycle does not wait.

    Raises:
        AssertionError: a number is negative, or active is 0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"schedule: need wait, warmup, repeat, skip_first >= 0 and active > 0, got wait={wait}, warmup={warmup}, "
            f"active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step = step + (wait if skip_first_wait else 0) - skip_first
        cycle, at = divmod(step, length)
        if (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action


def _default_schedule_fn(step):
    """The schedule of a profile that was given none: it records every step."""
    return ProfilerAction.RECORD


def kineto_available():
    """Whether operators can be recorded: True."""
    return True


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An `on_trace_ready` that writes each trace to `dir_name` as <worker>.<time>.pt.trace.json (.gz)."""

    def write(prof):
        import os
        import socket

        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


# Ranges of the user that have ended while a profile records; None where none does.
_ranges = None


class record_function(ContextDecorator):
    """Context and decorator: a named range in the profile."""

    def __init__(self, name, args=None):
        self.name = name
        self._starts = []

    def __enter__(self):
        self._starts.append(time.monotonic_ns())
        return self

    def __exit__(self, *error):
        start = self._starts.pop()
        if _ranges is not None:
            _ranges.append((self.name, start, time.monotonic_ns(), threading.get_native_id(), -1, USER))
        return False

    def _recreate_cm(self):
        return record_function(self.name)


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Context that records every operator and backward node.

    Args:
        activities: what to record; of ProfilerActivity's values CPU alone is recorded, the others are accepted.
        schedule: function of the step's number to a ProfilerAction; call `step()` after each step. By default
            everything is recorded.
        on_trace_ready: called with the profile when a recording is complete.
        record_shapes: the shapes of each operator's arguments, `input_shapes` of its event.
        with_stack: the Python lines that called it, `stack` of its event.
        profile_memory, with_flops, with_modules: not recorded; asking for them warns.

    Raises:
        RuntimeError: another profile is recording.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        acc_events=False,
    ):
        wanted = {"profile_memory": profile_memory, "with_flops": with_flops, "with_modules": with_modules}
        if lacking := [name for name, value in wanted.items() if value]:
            warnings.warn(f"profile: {', '.join(lacking)}: strata does not record that; the rest is", stacklevel=2)
        self.record_shapes, self.with_stack = bool(record_shapes), bool(with_stack)
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise ValueError(f"profile: activities must be values of ProfilerActivity, got {activity!r}")
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self._metadata = {}
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._step_range = None
        self._raw = None
        self._events = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()
        return False

    def start(self):
        """Begins with step 0."""
        self._move(self._action_of(self.step_num))
        self._open_step()

    def stop(self):
        """Ends the profile, and the recording where one runs."""
        self._close_step()
        if self.current_action is ProfilerAction.RECORD:
            # Nothing is lost when the profile ends in the middle of a cycle.
            self.current_action = ProfilerAction.RECORD_AND_SAVE
        self._move(ProfilerAction.NONE)

    def step(self):
        """The next step begins."""
        self._close_step()
        self.step_num += 1
        self._move(self._action_of(self.step_num))
        self._open_step()

    def _action_of(self, step):
        return (self.schedule or _default_schedule_fn)(step)

    def _open_step(self):
        if self.schedule is not None and self.current_action in _RECORDING:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self):
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _move(self, action):
        """From the current action to the next: begins and ends recordings."""
        before, self.current_action = self.current_action, action
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._collect(_stop_recording())
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.RECORD and action not in _RECORDING:
            warnings.warn(f"Incorrect schedule: RECORD followed by {action.name}", stacklevel=4)
            self._collect(_stop_recording())
        elif before is ProfilerAction.WARMUP and action is not ProfilerAction.WARMUP:
            if action is ProfilerAction.NONE:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)
            _stop_recording()
        running = before is action is ProfilerAction.WARMUP or before is ProfilerAction.RECORD
        if action is not ProfilerAction.NONE and not (running and action is not ProfilerAction.NONE):
            _start_recording(self.record_shapes, self.with_stack)

    def _collect(self, raw):
        self._raw = (self._raw or []) + raw if self.acc_events else raw
        self._events = None

    def events(self):
        """The recorded FunctionEvents, in order of their start.

        Raises:
            RuntimeError: nothing has been recorded yet.
        """
        if self._raw is None:
            raise RuntimeError("profile: nothing is recorded yet; the events are there once the recording has ended")
        if self._events is None:
            self._events = EventList.from_raw(self._raw)
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Sums by name; `.table()` prints them."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key, value):
        """A text that traces of this profile have under a name."""
        self._metadata[key] = value

    def add_metadata_json(self, key, value):
        """What a text of JSON says, in traces under a name. ValueError where it is none."""
        import json

        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path):
        """Writes the trace as JSON, compressed where `path` ends in .gz."""
        self.events()
        if not str(path).endswith(".gz"):
            self.events().export_chrome_trace(path, self._metadata)
            return
        import gzip
        import os
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            self.events().export_chrome_trace(plain, self._metadata)
            with open(plain, "rb") as source, gzip.open(path, "wb") as target:
                target.write(source.read())


def _start_recording(record_shapes, with_stack):
    global _ranges
    if _ranges is not None:
        raise RuntimeError("profile: another profile is recording; end it first")
    _C._profiler_start(record_shapes, with_stack)
    _ranges = []


def _stop_recording():
    """The raw events since the start, the user's ranges among them."""
    global _ranges
    ranges, _ranges = _ranges, None
    return [] if ranges is None else list(_C._profiler_stop()) + ranges  # None: another one has ended it


def _disable_profiler():
    """Ends the recording that runs, where one does; what it has is dropped."""
    _stop_recording()
