"""What a capture changes of its thread, and how it is put back wherever the capture ends: also where a signal's handler raises in it."""

from __future__ import annotations

import os
import sys
from _thread import RLock  # threading's, without the module's import

from strata import _C, _capture

from .forms import modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any


# Shapes are recorded by one thread at a time, as Python runs. A lock of one function is taken with this one held; a process is forked
# while no thread captures.
capture_lock = RLock()
os.register_at_fork(before=capture_lock.acquire, after_in_parent=capture_lock.release, after_in_child=capture_lock.release)


class Interrupted(BaseException):
    """A signal's handler has raised while a function was captured: no exception of the program's own."""

    def __init__(self, error: BaseException):
        super().__init__(error)
        self.error = error


class ThreadState:
    def __init__(self) -> None:
        self.grad, self.autocast, self.dtype = modes()
        self.apart = None
        self.asking = _C._torch_function_state()

    def draw_apart(self) -> Any:
        """Until restore() the thread draws from a generator of its own, which is given: what a capture draws is drawn again by the
        call, and other threads draw meanwhile."""
        self.apart = _C._draw_apart()
        return _C._own_generator()

    def restore(self, recorder: Any) -> None:
        """recorder: what stops its recording, a tracer or a region, or None. May be called again where it was interrupted."""
        try:
            if recorder is not None:
                recorder.stop()
        finally:
            _capture.abandon()
            _C._executed_frames(())
            _C._set_torch_function_state(self.asking)
            _C._set_grad_enabled(self.grad)
            _C.set_autocast_enabled("cpu", self.autocast)
            _C.set_autocast_dtype("cpu", self.dtype)
            if self.apart is not None:
                _C._draw_back(self.apart)


def of_a_signal(error: BaseException | None) -> BaseException | None:
    """Of an exception and those that led to it the one that a signal's handler raised in the capture that runs: it has been given the
    frame that it interrupted."""
    capture = sys._getframe()
    while capture is not None and capture.f_code.co_qualname != "Compiled.capture":
        capture = capture.f_back
    while error is not None and capture is not None:
        raised = getattr(error, "error", error)  # of Raised
        at = raised.__traceback__ if isinstance(raised, BaseException) else None
        while at is not None:
            frame, caller = at.tb_frame, at.tb_frame.f_back
            # A frame that was asked for its variables holds them from then on, the exception among them: not ours.
            asked = caller is not None and not str(frame.f_globals.get("__name__", "")).startswith("strata")
            for value in frame.f_locals.values() if asked else ():
                if (value is caller or (type(value) is tuple and len(value) == 2 and value[1] is caller)) and _is_inside(caller, capture):
                    return raised
            at = at.tb_next
        error = error.__context__
    return None


def _is_inside(frame: types.FrameType | None, outer: types.FrameType) -> bool:
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is outer


def pass_on_signals(error: BaseException) -> None:
    """Raises Interrupted where a signal's handler raised."""
    if (raised := of_a_signal(error)) is not None:
        raise Interrupted(raised) from None
