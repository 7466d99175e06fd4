"""Queues of a device's work and events in them: torch.Stream and torch.Event.

Work of a stream runs in order; streams run beside each other, and what one needs of another has to wait for it
(`wait_stream`, `wait_event`). A block of memory that other streams used stays until they are done with it.
"""

from __future__ import annotations

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Event", "Stream"]


def _place(device: object, what: str) -> _C.device:
    """A device of a plugin, with its number."""
    from strata import accelerator

    found = accelerator._device(device, what)
    if found.type in ("cpu", "meta"):
        raise RuntimeError(f"{what}: expected a device of a plugin, got '{found}', whose operators are done when they return")
    return found if found.index is not None else _C.device(found.type, _C._device_current(found))


class Stream:
    """A stream of a device: the next of 32, which come round again; `with stream:` makes it this thread's current one.

    `priority` is taken as PyTorch takes it; devices have one.
    """

    device: _C.device
    stream_id: int

    def __init__(self, device: object = None, *, priority: int = 0) -> None:
        self.device = _place(device, "Stream")
        self.stream_id = _C._stream_new(self.device)
        self._before: list[Stream] = []

    @classmethod
    def _of(cls, device: object, number: int | None = None, what: str = "Stream") -> Stream:
        """The stream of that number; None: this thread's current one."""
        made = cls.__new__(cls)
        made.device = _place(device, what)
        made.stream_id = _C._stream_current(made.device) if number is None else number
        made._before = []
        return made

    @property
    def device_index(self) -> int:
        """The device's number."""
        return self.device.index

    @property
    def device_type(self) -> str:
        """The device's name."""
        return self.device.type

    def query(self) -> bool:
        """Whether all that the stream was given is done."""
        return _C._stream_query(self.device, self.stream_id)

    def synchronize(self) -> None:
        """Waits until it is; raises what went wrong there, by the operator's name and the line that called it."""
        _C._stream_synchronize(self.device, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """An event, new where none is given, that stands for what the stream was given so far."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What the stream is given from now on runs after the event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What the stream is given from now on runs after all that another one was given."""
        if stream.device != self.device:
            stream.synchronize()
        elif stream.stream_id != self.stream_id:
            _C._stream_wait(self.device, self.stream_id, stream.stream_id)

    def __enter__(self) -> Stream:
        self._before.append(Stream._of(self.device))
        _C._stream_set(self.device, self.stream_id)
        return self

    def __exit__(self, *_: object) -> None:
        _C._stream_set(self.device, self._before.pop().stream_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((str(self.device), self.stream_id))

    def __repr__(self) -> str:
        return f"strata.Stream device_type={self.device.type}, device_index={self.device.index}, stream_id={self.stream_id}"


class Event:
    """A point in the work of a stream, where it was recorded last.

    `blocking` and `interprocess` are PyTorch's: waiting always lets other threads run, and processes share no events.
    """

    def __init__(self, device: object = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("Event: interprocess=True: processes share no events")
        self._device = None if device is None else _place(device, "Event")
        self._timing = enable_timing
        self._made: Any = None

    @property
    def device(self) -> _C.device | None:
        """The device; None before the first record() where none was given."""
        return self._device

    def record(self, stream: Stream | None = None) -> None:
        """Stands for what the stream, or the current one, was given so far."""
        stream = Stream._of(self._device, what="Event.record") if stream is None else stream
        if self._device not in (None, stream.device):
            raise RuntimeError(f"Event.record: expected a stream of {self._device}, the event's device, got one of {stream.device}")
        self._device = stream.device
        if self._made is None:
            self._made = _C._event_new(self._device, self._timing)
        _C._event_record(self._made, stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """What the stream, or the current one, is given from now on runs after the event."""
        if self._made is None:
            return
        stream = Stream._of(self._device, what="Event.wait") if stream is None else stream
        if stream.device == self._device:
            _C._event_wait(self._made, stream.stream_id)
        else:
            self.synchronize()

    def query(self) -> bool:
        """Whether the event is over; True before it is recorded."""
        return self._made is None or _C._event_query(self._made)

    def synchronize(self) -> None:
        """Waits until it is. What went wrong before it is raised by the stream's synchronize()."""
        if self._made is not None:
            _C._event_synchronize(self._made)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another; both are over, and made with enable_timing=True."""
        if self._made is None or end_event._made is None:
            raise RuntimeError("elapsed_time: expected two events that were recorded")
        return _C._event_elapsed(self._made, end_event._made)

    def __repr__(self) -> str:
        return f"strata.Event device={self._device}, enable_timing={self._timing}"
