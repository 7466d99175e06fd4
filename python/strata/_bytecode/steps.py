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


def delete_cell(f: Frame, place: int) -> None:
    """`del` of a variable that inner functions share."""
    name = f.names[place]
    try:
        f.machine.cell_delete(f.locals[place])
    except ValueError:
        free = place >= len(f.names) - len(f.code.co_freevars)
        kind = NameError if free else UnboundLocalError
        what = "free variable" if free else "local variable"
        end = " in enclosing scope" if free else ""
        raise raised(f, kind(f"cannot access {what} '{name}' where it is not associated with a value{end}")) from None


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


_MATCHES_SELF = 1 << 22  # Py_TPFLAGS of builtin types whose one positional sub-pattern is the value itself


def match_class(f: Frame, subject: Any, kind: Any, count: int, names: tuple) -> tuple | None:
    """The attributes that `case kind(...)` binds; None where the subject does not match."""
    machine = f.machine
    if not isinstance(kind, type):
        raise raised(f, TypeError("called match pattern must be a class"))
    if not machine.call(isinstance, (subject, kind), {}):
        return None
    found, positions = [], ()
    if count and hasattr(kind, "__match_args__"):
        positions = machine.getattr(kind, "__match_args__")
        if type(positions) is not tuple:
            raise raised(f, TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(positions).__name__})"))
    elif count and kind.__flags__ & _MATCHES_SELF:
        if count > 1:
            raise raised(f, TypeError(f"{kind.__name__}() accepts 1 positional sub-pattern ({count} given)"))
        found, count = [subject], 0
    if count > len(positions):
        given = f"{len(positions)} positional sub-pattern{'' if len(positions) == 1 else 's'}"
        raise raised(f, TypeError(f"{kind.__name__}() accepts {given} ({count} given)"))
    wanted = (*positions[:count], *names)
    for i, name in enumerate(wanted):
        if type(name) is not str:
            raise raised(f, TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})"))
        if name in wanted[:i]:
            raise raised(f, TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}"))
        if not machine.call(hasattr, (subject, name), {}):
            return None
        found.append(machine.getattr(subject, name))
    return tuple(found)


def match_keys(f: Frame, subject: Any, keys: tuple) -> tuple | None:
    """The values that `case {key: ...}` binds; None where a key is missing."""
    if len(set(keys)) < len(keys):
        again = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise raised(f, ValueError(f"mapping pattern checks duplicate key ({again!r})"))
    absent, get = frames.NULL, f.machine.getattr(subject, "get")
    found = tuple(f.machine.call(get, (key, absent), {}) for key in keys)
    return None if any(value is absent for value in found) else found
