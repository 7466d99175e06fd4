"""The user's line: where in a program it is that strata was called."""

from __future__ import annotations

import sys

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def user_frame() -> FrameType | None:
    """The innermost frame that is not strata's own."""
    here = strata.__file__.rpartition("/")[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((here, "<frozen")):
        frame = frame.f_back
    return frame


def line_text(frame: FrameType | None) -> str:
    """A frame's line as tracebacks print it; "" without one."""
    import linecache

    if frame is None:
        return ""
    file, number = frame.f_code.co_filename, frame.f_lineno
    return f'  File "{file}", line {number}, in {frame.f_code.co_name}\n    {linecache.getline(file, number).strip()}'
