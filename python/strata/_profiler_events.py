"""What the profiler has seen, as events with parents and children, sums by name, a table and a trace file.

A raw event is (name, start_ns, end_ns, thread_id, seq_nr, kind): the times are of the monotonic clock, the thread is
the system's number, seq_nr is shared by a forward operator and the backward node it made (-1 where there is none). The
shapes of its arguments and the Python stack, as lines, may follow.
An event that ran while another of its thread ran is that one's child, and its time is not the parent's own.
"""

import operator
import sys

OPERATOR, BACKWARD, USER = range(3)
_CATEGORY = {OPERATOR: "cpu_op", BACKWARD: "cpu_op", USER: "user_annotation"}


def _stack():
    """The Python stack at an operator's call, the innermost line first: "file(line): function"."""
    frame, lines = sys._getframe(1), []
    while frame is not None:
        lines.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return "\n".join(lines)


def _time_text(us):
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _in_unit(us, unit):
    scale = {"s": 1e6, "ms": 1e3, "us": 1.0}.get(unit)
    return _time_text(us) if scale is None else f"{us / scale:.3f}{unit}"


def _share_text(part, whole):
    return f"{100.0 * part / whole:.2f}%" if whole else "NaN"


class Interval:
    """Start and end in microseconds."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class FunctionEvent:
    """One run of an operator, backward node or user's range; times in microseconds."""

    count = 1

    def __init__(self, id, name, start_us, end_us, thread, sequence_nr=-1, kind=OPERATOR, shapes=(), stack=""):
        self.id, self.name, self.key = id, name, name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.sequence_nr, self.kind = thread, sequence_nr, kind
        self.input_shapes = list(shapes)
        self.stack = stack.split("\n") if stack else []
        self.cpu_children = []
        self.cpu_parent = None

    @property
    def is_user_annotation(self):
        return self.kind == USER

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={_time_text(self.cpu_time_total)} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} thread={self.thread} "
            f"cpu_children={[child.id for child in self.cpu_children]} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg:
    """The events of one name together.

    `cpu_time_total` counts an event within another of the same name once, and `self_cpu_time_total` never counts a
    nested event of any name, so the latter add up to the time that was spent.
    """

    cpu_parent = None

    def __init__(self, key, input_shapes=(), stack=()):
        self.key = key
        self.input_shapes, self.stack = list(input_shapes), list(stack)
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.kind = OPERATOR

    def add(self, event, nested_in_itself=False):
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_time_total += 0.0 if nested_in_itself else event.cpu_time_total
        self.kind = event.kind

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def is_user_annotation(self):
        return self.kind == USER

    def __repr__(self):
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={_time_text(self.self_cpu_time_total)} "
            f"cpu_time={_time_text(self.cpu_time)} count={self.count}>"
        )


class EventList(list):
    """Events of a profile, or sums of them (`key_averages`)."""

    @classmethod
    def from_raw(cls, raw):
        """The events in order of their start, with parents and children set."""
        origin = min((start for _, start, *_ in raw), default=0)
        events = cls()
        # Of two that start together, the longer one encloses the other.
        for name, start, end, thread, seq, kind, *detail in sorted(raw, key=lambda e: (e[1], -e[2])):
            us = (start - origin) / 1e3, (max(start, end) - origin) / 1e3
            events.append(FunctionEvent(len(events) + 1, name, *us, thread, seq, kind, *detail))
        events._link()
        events.origin_ns = origin
        return events

    def _link(self):
        stacks = {}
        for event in self:
            stack = stacks.setdefault(event.thread, [])
            while stack and stack[-1].time_range.end < event.time_range.end:
                stack.pop()
            while stack and stack[-1].time_range.end <= event.time_range.start < event.time_range.end:
                stack.pop()
            if stack:
                event.cpu_parent = stack[-1]
                stack[-1].cpu_children.append(event)
            stack.append(event)

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0):
        """Sums by name, and by shapes and the innermost lines of the stack where these were recorded; in order of first
        appearance."""
        sums = {}
        for event in self:
            outer = event.cpu_parent
            while outer is not None and outer.key != event.key:
                outer = outer.cpu_parent
            shapes = event.input_shapes if group_by_input_shapes else []
            stack = event.stack[:group_by_stack_n]
            one = sums.setdefault((event.key, repr(shapes), *stack), FunctionEventAvg(event.key, shapes, stack))
            one.add(event, outer is not None)
        return EventList(sums.values())

    def total_average(self):
        """One sum over everything."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event, event.cpu_parent is not None)
        return total

    def table(
        self,
        sort_by=None,
        row_limit=100,
        header=None,
        top_level_events_only=False,
        max_name_column_width=55,
        time_unit=None,
    ):
        """The events as text.

        Args:
            sort_by: attribute to sort by, largest first: "cpu_time_total", "self_cpu_time_total", "cpu_time", "count".
            row_limit: rows shown (-1: all).
            header: a line above.
            top_level_events_only: leave out what ran within something else.
            max_name_column_width: longer names are cut (None: never).
            time_unit: "s", "ms" or "us" for all times.
        """
        if not self:
            return ""
        whole = self.self_cpu_time_total
        events = self if sort_by is None else sorted(self, key=operator.attrgetter(sort_by), reverse=True)
        if top_level_events_only:
            events = [event for event in events if event.cpu_parent is None]
        limit = float("inf") if max_name_column_width is None else max_name_column_width
        width = min(max(len(event.key) for event in self) + 4, limit)
        titles = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
        widths = (width, *(12 for _ in titles[1:]))
        details = []
        for title, attribute, show in (("Input Shapes", "input_shapes", str), ("Source Location", "stack", "; ".join)):
            if any(getattr(event, attribute) for event in self):
                details.append((attribute, show))
                titles += (title,)
                widths += (max(len(title), *(len(show(getattr(event, attribute))) for event in self)),)

        def line(cells):
            return "".join(f"{cell:>{w}}  " for cell, w in zip(cells, widths, strict=True))

        def row(event):
            name = event.key if len(event.key) < limit - 3 else event.key[: limit - 3] + "..."
            return (
                name,
                _share_text(event.self_cpu_time_total, whole),
                _in_unit(event.self_cpu_time_total, time_unit),
                _share_text(event.cpu_time_total, whole),
                _in_unit(event.cpu_time_total, time_unit),
                _in_unit(event.cpu_time, time_unit),
                event.count,
                *(show(getattr(event, attribute)) for attribute, show in details),
            )

        rule = line(["-" * w for w in widths])
        double_rule = "=" * (len(rule) - 2)
        lines = [] if header is None else [double_rule, header]
        if top_level_events_only:
            lines += [double_rule, "This report only display top-level ops statistics"]
        shown = events[: row_limit if row_limit >= 0 else None]
        lines += [rule, line(titles), rule, *(line(row(event)) for event in shown), rule]
        lines.append(f"Self CPU time total: {_in_unit(whole, time_unit)}")
        return "\n".join(lines) + "\n"

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path, metadata=None):
        """Writes the events as trace JSON, which Perfetto and chrome://tracing show. Arrows lead from each forward
        operator to the backward node it made. metadata: values by name that the file has beside the events."""
        import json
        import os

        pid = os.getpid()
        base = self.origin_ns / 1e3
        trace = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "strata"}}]
        for thread in dict.fromkeys(event.thread for event in self):
            name = {"name": f"thread {thread}"}
            trace.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": name})
        for event in self:
            trace.append(
                {
                    "ph": "X",
                    "cat": _CATEGORY.get(event.kind, "cpu_op"),
                    "name": event.name,
                    "pid": pid,
                    "tid": event.thread,
                    "ts": base + event.time_range.start,
                    "dur": event.cpu_time_total,
                    "args": {
                        "External id": event.id,
                        "Sequence number": event.sequence_nr,
                        **({"Input Dims": event.input_shapes} if event.input_shapes else {}),
                        **({"Call stack": ";".join(event.stack)} if event.stack else {}),
                    },
                }
            )
        for forward, backward in self._links():
            arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": backward.id, "pid": pid}
            trace.append({**arrow, "ph": "s", "tid": forward.thread, "ts": base + forward.time_range.start})
            trace.append(
                {**arrow, "ph": "f", "tid": backward.thread, "ts": base + backward.time_range.start, "bp": "e"}
            )
        with open(path, "w") as file:
            json.dump({**(metadata or {}), "schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": trace}, file)

    def _links(self):
        """Pairs of forward operator and backward node. Where nested operators share a number, the innermost made it."""
        makers = {}
        for event in self:
            if event.sequence_nr < 0:
                continue
            if event.kind == OPERATOR:
                makers[event.sequence_nr] = event
            elif event.kind == BACKWARD and event.sequence_nr in makers:
                yield makers[event.sequence_nr], event
