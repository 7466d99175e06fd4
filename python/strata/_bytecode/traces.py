"""The lines of a program's code in the traceback of an error, where it was not Python that ran it."""

from __future__ import annotations

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

_SHOWN = "frame = here()"  # of which only the frame is wanted


def located(error: BaseException, code: CodeType, offset: int, globals: dict) -> None:
    """Puts a line for the instruction above what raised the error, in the place of those of what ran the instruction."""
    lines = list(code.co_positions())
    line = (lines[offset // 2][0] if offset // 2 < len(lines) else None) or code.co_firstlineno
    # A last instruction below 0 says that the line is all that is known.
    error.__traceback__ = types.TracebackType(of_the_program(error.__traceback__), _frame(code, globals), -1, line)


def of_the_program(at: types.TracebackType | None) -> types.TracebackType | None:
    """What is below the frames of this package."""
    while at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("strata._bytecode"):
        at = at.tb_next
    return at


def _frame(code: CodeType, globals: dict) -> types.FrameType:
    shown = compile(_SHOWN, code.co_filename, "exec").replace(co_name=code.co_name, co_qualname=code.co_qualname)
    space = {"here": sys._getframe, "__name__": globals.get("__name__", "")}
    exec(shown, space)  # noqa: S102
    frame = space.pop("frame")
    space.pop("here")
    return frame
