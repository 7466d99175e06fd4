"""Opcodes of calls, functions, exceptions, contexts."""

from __future__ import annotations

import types

from . import frame as frames
from .steps import delete_cell, match_class, match_keys, raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .decode import Instruction
    from .frame import Frame

HANDLERS = frames.HANDLERS


def _opcode(function: Callable) -> Callable:
    HANDLERS[function.__name__] = function
    return function


def _take(f: Frame, count: int) -> list:
    if not count:
        return []
    taken = f.stack[-count:]
    del f.stack[-count:]
    return taken


# ---- calls


@_opcode
def KW_NAMES(f: Frame, i: Instruction) -> Any:
    f.kw_names = f.code.co_consts[i.arg]
    return NotImplemented


@_opcode
def POP_KW_NAMES(f: Frame, i: Instruction) -> Any:
    f.kw_names = f.stack.pop()
    return NotImplemented


@_opcode
def CALL(f: Frame, i: Instruction) -> Any:
    args = _take(f, i.arg)
    first, second = _take(f, 2)
    names, f.kw_names = f.kw_names, ()
    kwargs = dict(zip(names, args[len(args) - len(names) :], strict=True)) if names else {}
    args = args[: len(args) - len(names)]
    if first is frames.NULL:
        function = second
    else:
        function, args = first, [second, *args]
    f.stack.append(f.machine.call(function, tuple(args), kwargs, f))
    return NotImplemented


@_opcode
def CALL_FUNCTION_EX(f: Frame, i: Instruction) -> Any:
    kwargs = f.stack.pop() if i.arg & 1 else {}
    args = f.stack.pop()
    function = f.stack.pop()
    f.stack.pop()  # NULL
    found = f.machine.call(function, tuple(f.machine.listed(args)), dict(f.machine.as_dict(kwargs)), f)
    f.stack.append(found)
    return NotImplemented


@_opcode
def MAKE_FUNCTION(f: Frame, i: Instruction) -> Any:
    code, parts = f.stack.pop(), i.arg
    while f.instructions[f.index].name == "SET_FUNCTION_ATTRIBUTE":  # each of which has one bit
        parts |= f.instructions[f.index].arg
        f.index += 1
    closure = f.stack.pop() if parts & 8 else None
    annotations = f.stack.pop() if parts & 4 else ()
    keywords = f.stack.pop() if parts & 2 else None
    defaults = f.stack.pop() if parts & 1 else None
    made = types.FunctionType(code, f.globals, code.co_name, defaults, closure)
    made.__kwdefaults__ = keywords
    made.__annotations__ = dict(zip(annotations[::2], annotations[1::2], strict=True))
    f.machine.made_function(made)
    f.stack.append(made)
    return NotImplemented


@_opcode
def SET_FUNCTION_ATTRIBUTE(f: Frame, i: Instruction) -> Any:
    raise AssertionError("MAKE_FUNCTION does what these do that follow it")


@_opcode
def LOAD_BUILD_CLASS(f: Frame, i: Instruction) -> Any:
    f.stack.append(f.machine.global_get(f, "__build_class__"))
    return NotImplemented


@_opcode
def RETURN_VALUE(f: Frame, i: Instruction) -> Any:
    f.done = True
    return f.machine.returned(f, f.stack.pop()), False


@_opcode
def RETURN_GENERATOR(f: Frame, i: Instruction) -> Any:
    f.stack.append(None)  # what the first next() sends
    return NotImplemented


@_opcode
def YIELD_VALUE(f: Frame, i: Instruction) -> Any:
    return f.stack.pop(), True


# ---- exceptions and contexts


@_opcode
def BEFORE_WITH(f: Frame, i: Instruction) -> Any:
    entered, leave = f.machine.enter(f.stack.pop())
    f.stack += [leave, entered]
    f.exits.append(leave)
    return NotImplemented


@_opcode
def WITH_EXCEPT_START(f: Frame, i: Instruction) -> Any:
    error = f.stack[-1]
    f.stack.append(f.machine.call(f.stack[-4], (type(error), error, error.__traceback__), {}))
    return NotImplemented


@_opcode
def PUSH_EXC_INFO(f: Frame, i: Instruction) -> Any:
    error = f.stack.pop()
    f.stack += [f.handled[-1] if f.handled else None, error]
    f.handled.append(error)
    return NotImplemented


@_opcode
def POP_EXCEPT(f: Frame, i: Instruction) -> Any:
    f.stack.pop()
    f.handled.pop()
    return NotImplemented


@_opcode
def CHECK_EXC_MATCH(f: Frame, i: Instruction) -> Any:
    kinds = f.stack.pop()
    f.stack.append(f.machine.matches_error(f.stack[-1], kinds))
    return NotImplemented


@_opcode
def RERAISE(f: Frame, i: Instruction) -> Any:
    raise raised(f, f.stack.pop())


@_opcode
def RAISE_VARARGS(f: Frame, i: Instruction) -> Any:
    if i.arg == 0:
        if not f.handled:
            raise raised(f, RuntimeError("No active exception to reraise"))
        raise raised(f, f.handled[-1])
    cause = f.stack.pop() if i.arg == 2 else None
    error = f.stack.pop()
    if isinstance(error, type):
        error = f.machine.call(error, (), {})
    if i.arg == 2:
        if isinstance(cause, type) and issubclass(cause, BaseException):
            cause = f.machine.call(cause, (), {})
        if not isinstance(cause, (BaseException, types.NoneType)):
            raise raised(f, TypeError("exception causes must derive from BaseException"))
        error.__cause__ = cause
    raise raised(f, error)


# ---- what is deleted, and patterns


@_opcode
def DELETE_GLOBAL(f: Frame, i: Instruction) -> Any:
    f.machine.global_delete(f, f.code.co_names[i.arg])
    return NotImplemented


@_opcode
def DELETE_DEREF(f: Frame, i: Instruction) -> Any:
    delete_cell(f, i.arg)
    return NotImplemented


@_opcode
def MATCH_CLASS(f: Frame, i: Instruction) -> Any:
    subject, kind, names = _take(f, 3)
    f.stack.append(match_class(f, subject, kind, i.arg, names))
    return NotImplemented


@_opcode
def MATCH_KEYS(f: Frame, i: Instruction) -> Any:
    f.stack.append(match_keys(f, f.stack[-2], f.stack[-1]))
    return NotImplemented
