"""A frame whose bytecode is executed here, instruction by instruction, with real objects as values.

What an instruction does with values is a machine's to say: capture (tracer.py) or plain Python (plain.py). Opcodes are in
table.py; versions.py knows how the running version of Python spells them.
"""

from __future__ import annotations

import types

from .decode import decode
from .traces import located, of_the_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Mark:
    """A value that no program has."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


NULL = _Mark("NULL")  # what calls find below a function that is no method
UNBOUND = _Mark("UNBOUND")  # a local that has no value
NATIVE = object()  # what is called where a function runs as it is
HANDLERS: dict[str, Callable[[Any, Any], Any]] = {}  # of opcodes: what table.py says


class Returned(Exception):
    """Never raised: a frame's result."""


class Jump:
    """What a stretch returns that stopped before its function's end: where, and with which variables and values."""

    __slots__ = ("locals", "offset", "stack")

    def __init__(self, offset: int, variables: list, stack: list):
        self.offset, self.locals, self.stack = offset, variables, stack


class Frame:
    """One call. locals: by place in co_varnames; cells: own ones, then free ones, by their place among the locals."""

    def __init__(self, machine: Any, code: types.CodeType, variables: dict, function: Any = None):
        self.machine, self.code, self.globals, self.function = machine, code, variables, function
        builtins = variables.get("__builtins__", __builtins__)
        self.builtins = builtins.__dict__ if isinstance(builtins, types.ModuleType) else builtins
        decoded = decode(code)
        self.decoded, self.instructions = decoded, decoded.instructions
        self.names = code.co_varnames + tuple(c for c in code.co_cellvars if c not in code.co_varnames) + code.co_freevars
        self.locals: list[Any] = [UNBOUND] * len(self.names)
        self.stack: list[Any] = []
        self.index = self.last = 0  # of the next instruction, and of the last that was begun
        self.kw_names: tuple[str, ...] = ()
        self.handled: list[BaseException | None] = []  # exceptions that are being handled
        self.exits: list[Any] = []  # what leaves the contexts that were entered, while it is on the stack
        self.closure: tuple = ()
        self.done = False

    def jump(self, offset: int) -> None:
        self.index = self.decoded.at[offset]

    @property
    def offset(self) -> int:
        return self.instructions[self.index].offset

    def covered(self) -> bool:
        """Whether an exception that is raised here would be handled here, one is being handled, or a context is open."""
        if self.exits:
            self.exits = [leave for leave in self.exits if any(leave is v for v in self.stack)]
        return bool(self.handled or self.exits) or self.decoded.catches(self.offset)

    def would_handle(self) -> bool:
        """Whether an exception that is raised now would be seen by a `try` of the program, an `except` or a `finally`."""
        own = not self.globals.get("__name__", "").startswith("strata.")
        return own and self.decoded.tries(self.instructions[max(0, self.index - 1)].offset)

    def step(self) -> Any:
        """One instruction. NotImplemented: it goes on; else the frame's result, in a tuple: (value, whether it is yielded)."""
        instruction = self.instructions[self.index]
        handler = HANDLERS.get(instruction.name)
        if handler is None:
            self.machine.unknown(instruction.name)
        self.last = self.index
        self.index += 1
        if self.machine.counted and instruction.name not in COUNTING:
            self.machine.settle(self)
        try:
            if self.handled and self.machine.acts:
                return while_handled(self.handled[-1], handler, self, instruction)
            return handler(self, instruction)
        except self.machine.errors as error:
            if self.handled:
                self.chain(self.machine.unwrap_error(error))
            self.unwind(error, instruction.offset)
            return NotImplemented

    def chain(self, error: BaseException) -> None:
        """An exception that is raised while another one is handled."""
        handled = self.handled[-1]
        if error is not handled and error.__context__ is None:
            error.__context__ = handled

    def unwind(self, error: BaseException, offset: int) -> None:
        """Goes on at the handler of an exception, or raises it."""
        if self.machine.acts and self.instructions[self.last].name != "RERAISE":
            located(error, self.code, offset, self.globals)
        found = self.decoded.handler(offset)
        if found is None:
            self.done = True
            raise error
        target, depth, lasti = found
        del self.stack[depth:]
        if lasti:
            self.stack.append(offset // 2)
        self.stack.append(self.machine.unwrap_error(error))
        self.jump(target)
        self.last = self.index

    def between(self, error: BaseException) -> None:
        """An exception that was raised beside the instructions, as by a signal's handler, is that of the next one where Python
        would look for signals: what a `with` or a `finally` begins with is not cut off."""
        while not self.done and self.instructions[self.last].name not in LOOKING:
            self.step()
        if self.done:
            raise error.with_traceback(of_the_program(error.__traceback__))
        if self.handled:
            self.chain(error)
        # Of 3.12 and later no handler sees some jumps back to the head of a loop inside of a `try`.
        self.unwind(error, max(self.instructions[self.last].offset, self.offset, key=lambda at: len(list(self.decoded.reached(at)))))

    def run(self) -> Any:
        """To its end, or to the next yield. (value, whether it is yielded)"""
        machine = self.machine
        while True:
            machine.before(self)
            result = self.step()
            if result is not NotImplemented:
                return result


def while_handled(error: BaseException | None, handler: Callable, frame: Frame, instruction: Any) -> Any:
    """One instruction that sees, as sys.exc_info() does, that an exception is being handled."""
    if error is None:
        return handler(frame, instruction)
    kept = error.__traceback__, error.__context__
    try:
        raise error
    except BaseException:
        error.__traceback__, error.__context__ = kept
        return handler(frame, instruction)


def bind(function: types.FunctionType, args: tuple, kwargs: dict[str, Any], read: Callable) -> list[Any]:
    """The values of a function's parameters, in the order of co_varnames. TypeError where they do not fit.

    read(function, "__defaults__" or "__kwdefaults__") gives the defaults.
    """
    code = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: count + only]
    values: list[Any] = [UNBOUND] * (count + only)
    values[: min(len(args), count)] = args[:count]
    rest = dict(kwargs)
    for i, name in enumerate(names):
        if name in rest and i >= code.co_posonlyargcount:
            if values[i] is not UNBOUND:
                raise misfit(function, args, kwargs)
            values[i] = rest.pop(name)
    if any(v is UNBOUND for v in values[:count]):
        defaults = read(function, "__defaults__") or ()
        for i, value in enumerate(defaults, count - len(defaults)):
            if values[i] is UNBOUND:
                values[i] = value
    if any(v is UNBOUND for v in values[count:]):
        defaults = read(function, "__kwdefaults__") or {}
        for i in range(count, count + only):
            if values[i] is UNBOUND and names[i] in defaults:
                values[i] = defaults[names[i]]
    if any(v is UNBOUND for v in values):
        raise misfit(function, args, kwargs)
    if code.co_flags & 4:
        values.append(tuple(args[count:]))
    elif len(args) > count:
        raise misfit(function, args, kwargs)
    if code.co_flags & 8:
        values.append(rest)
    elif rest:
        raise misfit(function, args, kwargs)
    return values


def _nothing() -> None:
    pass


def misfit(function: types.FunctionType, args: tuple, kwargs: dict[str, Any]) -> TypeError:
    """What Python raises for arguments that do not fit, told by a function of the same parameters that does nothing."""
    code = function.__code__.replace(
        co_code=_nothing.__code__.co_code, co_consts=(None,), co_exceptiontable=b"", co_cellvars=(), co_freevars=(),
        co_flags=function.__code__.co_flags & (4 | 8 | 1 | 2), co_stacksize=1,
    )  # fmt: skip
    same = types.FunctionType(code, {}, code.co_name, function.__defaults__)
    same.__kwdefaults__, same.__qualname__ = function.__kwdefaults__, function.__qualname__
    try:
        same(*args, **kwargs)
    except TypeError as error:
        return error.with_traceback(None)
    return TypeError(f"{function.__qualname__}() gets arguments that do not fit")


def frame_of(machine: Any, function: types.FunctionType, values: list[Any], closure: tuple) -> Frame:
    """A frame at the begin of a call."""
    frame = Frame(machine, function.__code__, function.__globals__, function)
    frame.locals[: len(values)] = values
    frame.closure = closure
    return frame


# What numbers that are not settled may go through.
COUNTING = frozenset(
    "LOAD_FAST LOAD_GLOBAL LOAD_ATTR LOAD_DEREF LOAD_CONST LOAD_METHOD LOAD_CLOSURE STORE_FAST STORE_ATTR STORE_GLOBAL STORE_DEREF "
    "BINARY_OP SWAP COPY POP_TOP NOP RESUME PUSH_NULL JUMP_FORWARD JUMP_BACKWARD RETURN_VALUE".split()
)

# After which Python looks for signals.
LOOKING = frozenset(("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"))
