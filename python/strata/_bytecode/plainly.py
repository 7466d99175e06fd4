"""What a compiled function does between its stretches: instructions one by one, as Python does them."""

from __future__ import annotations

from strata import _C

from .frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .entries import Table
    from .frame import Jump

# What only moves values, or asks an iterator for the next: no place for an entry.
_MOVES = frozenset("FOR_ITER JUMP_FORWARD JUMP_BACKWARD STORE_FAST POP_TOP NOP RESUME SWAP COPY PUSH_NULL PRECALL CALL SEND LOAD_BUILD_CLASS".split())


class Plainly:
    """Of a compiled function."""

    def resumed(self, jump: Jump) -> Frame:
        frame = Frame(self.plain, self.code, self.function.__globals__, self.function)
        frame.locals, frame.stack = jump.locals, jump.stack
        frame.closure = self.function.__closure__ or ()
        frame.jump(jump.offset)
        return frame

    def interrupt(self, frame: Frame) -> tuple[bool, Any]:
        """Does what could not be captured, and on to where capture can begin again. (whether it returned, what)"""
        while True:
            try:
                result = self.plainly(frame)
                if result is not NotImplemented:
                    return True, result[0]
                # What an instruction prepares for the next belongs to it.
                if not frame.covered() and not frame.kw_names and frame.instructions[frame.index].name not in _MOVES:
                    return False, None
            except BaseException as error:
                frame.between(error)

    def finish(self, frame: Frame) -> Any:
        """To the end, as Python does it."""
        while True:
            try:
                result = self.plainly(frame)
                if result is not NotImplemented:
                    return result[0]
            except BaseException as error:
                frame.between(error)

    def again(self, table: Table, *bound: Any) -> Any:
        """A call whose graph raised, as Python does it: what it did before is done, and the error is that of its line."""
        if table is self.start and self.simple:
            return self.function(*bound)
        return self.finish(table.frame(self.plain, list(bound)))

    @staticmethod
    def plainly(frame: Frame) -> Any:
        """One instruction, whose line is what operators stand for meanwhile."""
        _C._executed_frames(((frame.code, frame.offset),))
        try:
            return frame.step()
        finally:
            _C._executed_frames(())
