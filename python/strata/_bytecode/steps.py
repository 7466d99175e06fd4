"""What tables of opcodes of any version share."""

from __future__ import annotations

import types

from . import frame as frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .frame import Frame


def raised(f: Frame, error: BaseException) -> BaseException:
    """What to raise for an exception of the program, which the frame then handles or passes on."""
    return f.machine.wrap_error(error)


def own_cell(machine: Any, value: Any) -> types.CellType:
    """A new variable that inner functions share."""
    cell = types.CellType() if value is frames.UNBOUND else types.CellType(value)
    machine.made_cell(cell)
    return cell


def copy_free_variables(f: Frame, count: int) -> None:
    """The cells of the function's closure, which stand last among the locals."""
    f.locals[len(f.locals) - count :] = f.closure


def unpack_rest(f: Frame, values: list, before: int, after: int) -> list:
    """`a, *b, c = values`."""
    if len(values) < before + after:
        text = f"not enough values to unpack (expected at least {before + after}, got {len(values)})"
        raise raised(f, ValueError(text))
    end = len(values) - after
    return [*values[:before], values[before:end], *values[end:]]
