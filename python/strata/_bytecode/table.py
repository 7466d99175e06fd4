"""What each opcode does, in terms of a machine's operations on values: those of CPython 3.11, and what later versions added."""

from __future__ import annotations

import opcode

from . import frame as frames
from . import table_flow
from .steps import copy_free_variables, own_cell, raised, unpack_rest
from .values import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .decode import Instruction
    from .frame import Frame

HANDLERS = table_flow.HANDLERS  # to which these are added
BINARY = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()


def _opcode(function: Callable) -> Callable:
    HANDLERS[function.__name__] = function
    return function


def _does(*names: str) -> Callable:
    """The handler of several opcodes, which gets what they do, too."""

    def register(function: Callable) -> Callable:
        for name in names:
            HANDLERS[name] = lambda f, i, name=name: function(f, i, name)
        return function

    return register


def _pushes(make: Callable[[Frame, Instruction], Any]) -> Callable[[Frame, Instruction], Any]:
    def handler(f: Frame, i: Instruction) -> Any:
        f.stack.append(make(f, i))
        return NotImplemented

    return handler


def _nothing(f: Frame, i: Instruction) -> Any:
    return NotImplemented


# Of STOPITERATION_ERROR's work takes care who asks a generator for values (Operators.resume).
for _name in "RESUME NOP PRECALL CACHE STOPITERATION_ERROR".split():
    HANDLERS[_name] = _nothing


def _never(f: Frame, i: Instruction) -> Any:
    raise AssertionError(f"{i.name}, behind which loops go on, or which only follows a throw into a generator")


for _name in "END_FOR END_SEND CLEANUP_THROW".split():
    HANDLERS[_name] = _never


def _take(f: Frame, count: int) -> list:
    if not count:
        return []
    taken = f.stack[-count:]
    del f.stack[-count:]
    return taken


# ---- stack


@_opcode
def POP_TOP(f: Frame, i: Instruction) -> Any:
    f.stack.pop()
    return NotImplemented


@_opcode
def SWAP(f: Frame, i: Instruction) -> Any:
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]
    return NotImplemented


HANDLERS["PUSH_NULL"] = _pushes(lambda f, i: frames.NULL)
HANDLERS["COPY"] = _pushes(lambda f, i: f.stack[-i.arg])
HANDLERS["LOAD_CONST"] = _pushes(lambda f, i: f.code.co_consts[i.arg])
HANDLERS["LOAD_ASSERTION_ERROR"] = _pushes(lambda f, i: AssertionError)


# ---- variables


def unbound(f: Frame, i: Instruction) -> UnboundLocalError:
    return UnboundLocalError(f"cannot access local variable '{f.names[i.arg]}' where it is not associated with a value")


@_opcode
def LOAD_FAST(f: Frame, i: Instruction) -> Any:
    value = f.locals[i.arg]
    if value is frames.UNBOUND:
        raise raised(f, unbound(f, i))
    if type(value) is Lazy:
        value = f.locals[i.arg] = f.machine.load(value.value, value.source)
    f.stack.append(value)
    return NotImplemented


@_opcode
def LOAD_FAST_AND_CLEAR(f: Frame, i: Instruction) -> Any:
    """Puts a variable aside while a comprehension has one of that name. NULL stands for no value."""
    value = f.locals[i.arg]
    f.stack.append(frames.NULL if value is frames.UNBOUND else value)
    f.locals[i.arg] = frames.UNBOUND
    return NotImplemented


@_opcode
def STORE_FAST(f: Frame, i: Instruction) -> Any:
    value = f.stack.pop()
    f.locals[i.arg] = frames.UNBOUND if value is frames.NULL else value
    return NotImplemented


@_opcode
def DELETE_FAST(f: Frame, i: Instruction) -> Any:
    if f.locals[i.arg] is frames.UNBOUND:
        raise raised(f, unbound(f, i))
    f.locals[i.arg] = frames.UNBOUND
    return NotImplemented


@_opcode
def MAKE_CELL(f: Frame, i: Instruction) -> Any:
    value = f.locals[i.arg]
    if type(value) is Lazy:
        value = f.machine.load(value.value, value.source)
    f.locals[i.arg] = own_cell(f.machine, value)
    return NotImplemented


@_opcode
def COPY_FREE_VARS(f: Frame, i: Instruction) -> Any:
    copy_free_variables(f, i.arg)
    return NotImplemented


def _cell(f: Frame, place: int) -> Any:
    value = f.locals[place]
    if type(value) is Lazy:
        value = f.locals[place] = f.machine.load(value.value, value.source)
    return value


HANDLERS["LOAD_CLOSURE"] = _pushes(lambda f, i: _cell(f, i.arg))
HANDLERS["LOAD_DEREF"] = _pushes(lambda f, i: f.machine.cell_get(_cell(f, i.arg), f.names[i.arg]))


@_opcode
def STORE_DEREF(f: Frame, i: Instruction) -> Any:
    f.machine.cell_set(_cell(f, i.arg), f.stack.pop())
    return NotImplemented


@_opcode
def LOAD_GLOBAL(f: Frame, i: Instruction) -> Any:
    if i.arg & 1:
        f.stack.append(frames.NULL)
    f.stack.append(f.machine.global_get(f, f.code.co_names[i.arg >> 1]))
    return NotImplemented


@_opcode
def STORE_GLOBAL(f: Frame, i: Instruction) -> Any:
    f.machine.global_set(f, f.code.co_names[i.arg], f.stack.pop())
    return NotImplemented


# ---- attributes and items

HANDLERS["LOAD_ATTR"] = _pushes(lambda f, i: f.machine.getattr(f.stack.pop(), f.code.co_names[i.arg]))
HANDLERS["IMPORT_FROM"] = _pushes(lambda f, i: f.machine.getattr(f.stack[-1], f.code.co_names[i.arg]))


@_opcode
def LOAD_METHOD(f: Frame, i: Instruction) -> Any:
    f.stack += [frames.NULL, f.machine.getattr(f.stack.pop(), f.code.co_names[i.arg])]
    return NotImplemented


@_opcode
def LOAD_SUPER(f: Frame, i: Instruction) -> Any:
    """`super(kind, obj)`, or `super()` of which kind and obj are known where that is Python's own."""
    function, kind, obj = _take(f, 3)
    f.stack.append(f.machine.call(function, (kind, obj) if i.arg or function is super else (), {}, f))
    return NotImplemented


@_opcode
def STORE_ATTR(f: Frame, i: Instruction) -> Any:
    value, obj = _take(f, 2)
    f.machine.setattr(obj, f.code.co_names[i.arg], value)
    return NotImplemented


@_opcode
def DELETE_ATTR(f: Frame, i: Instruction) -> Any:
    f.machine.delattr(f.stack.pop(), f.code.co_names[i.arg])
    return NotImplemented


@_opcode
def BINARY_SUBSCR(f: Frame, i: Instruction) -> Any:
    obj, key = _take(f, 2)
    f.stack.append(f.machine.getitem(obj, key))
    return NotImplemented


@_opcode
def STORE_SUBSCR(f: Frame, i: Instruction) -> Any:
    value, obj, key = _take(f, 3)
    f.machine.setitem(obj, key, value)
    return NotImplemented


@_opcode
def DELETE_SUBSCR(f: Frame, i: Instruction) -> Any:
    obj, key = _take(f, 2)
    f.machine.delitem(obj, key)
    return NotImplemented


@_opcode
def IMPORT_NAME(f: Frame, i: Instruction) -> Any:
    level, names = _take(f, 2)
    f.stack.append(f.machine.import_name(f, f.code.co_names[i.arg], names, level))
    return NotImplemented


# ---- operators


@_does("UNARY_POSITIVE", "UNARY_NEGATIVE", "UNARY_INVERT")
def _unary(f: Frame, i: Instruction, name: str) -> Any:
    operation = {"UNARY_POSITIVE": "pos", "UNARY_NEGATIVE": "neg", "UNARY_INVERT": "invert"}[name]
    f.stack.append(f.machine.unary(operation, f.stack.pop()))
    return NotImplemented



@_opcode
def TO_BOOL(f: Frame, i: Instruction) -> Any:
    """Here what follows asks for the truth itself, as a rule."""
    if not f.instructions[f.index].name.startswith(("POP_JUMP", "UNARY_NOT")):
        f.stack[-1] = f.machine.truth(f.stack[-1])
    return NotImplemented


HANDLERS["UNARY_NOT"] = _pushes(lambda f, i: not f.machine.truth(f.stack.pop()))


@_opcode
def BINARY_OP(f: Frame, i: Instruction) -> Any:
    a, b = _take(f, 2)
    name = BINARY[i.arg % 13]
    f.stack.append(f.machine.binary(name if i.arg < 13 else "i" + name.rstrip("_"), a, b))
    return NotImplemented


@_opcode
def COMPARE_OP(f: Frame, i: Instruction) -> Any:
    a, b = _take(f, 2)
    names = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
    f.stack.append(f.machine.binary(names[opcode.cmp_op[i.arg]], a, b))
    return NotImplemented


@_opcode
def IS_OP(f: Frame, i: Instruction) -> Any:
    a, b = _take(f, 2)
    f.stack.append(f.machine.same(a, b) != bool(i.arg))
    return NotImplemented


@_opcode
def CONTAINS_OP(f: Frame, i: Instruction) -> Any:
    a, b = _take(f, 2)
    f.stack.append(f.machine.contains(b, a) != bool(i.arg))
    return NotImplemented


# ---- jumps


def _ahead(f: Frame, i: Instruction) -> None:
    f.jump(i.next + 2 * i.arg)


def _back(f: Frame, i: Instruction) -> None:
    f.jump(i.next - 2 * i.arg)


@_does("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(f: Frame, i: Instruction, name: str) -> Any:
    (_ahead if name == "JUMP_FORWARD" else _back)(f, i)
    return NotImplemented


@_does(*(f"POP_JUMP_{way}_IF_{what}" for way in ("FORWARD", "BACKWARD") for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")))
def _pop_jump(f: Frame, i: Instruction, name: str) -> Any:
    value = f.stack.pop()
    if name.endswith("NONE"):
        taken = (value is None) != name.endswith("NOT_NONE")
    else:
        wanted = name.endswith("TRUE")
        asserts = f.instructions[f.index].name == "LOAD_ASSERTION_ERROR"
        taken = f.machine.holds(value, wanted) if asserts else f.machine.truth(value) == wanted
    if taken:
        (_ahead if "FORWARD" in name else _back)(f, i)
    return NotImplemented


@_does("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(f: Frame, i: Instruction, name: str) -> Any:
    if f.machine.truth(f.stack[-1]) == ("TRUE" in name):
        _ahead(f, i)
    else:
        f.stack.pop()
    return NotImplemented


@_opcode
def FOR_ITER(f: Frame, i: Instruction) -> Any:
    found, value = f.machine.next(f.stack[-1])
    if found:
        f.stack.append(value)
    else:
        f.stack.pop()
        _ahead(f, i)
    return NotImplemented


@_opcode
def SEND(f: Frame, i: Instruction) -> Any:
    sent = f.stack.pop()
    found, value = f.machine.next(f.stack[-1], sent)
    if found:
        f.stack.append(value)
    else:
        f.stack[-1] = value
        _ahead(f, i)
    return NotImplemented


HANDLERS["GET_ITER"] = _pushes(lambda f, i: f.machine.iter(f.stack.pop()))
HANDLERS["GET_YIELD_FROM_ITER"] = HANDLERS["GET_ITER"]
HANDLERS["GET_LEN"] = _pushes(lambda f, i: f.machine.call(len, (f.stack[-1],), {}))
HANDLERS["MATCH_SEQUENCE"] = _pushes(lambda f, i: f.machine.matches(f.stack[-1], "sequence"))
HANDLERS["MATCH_MAPPING"] = _pushes(lambda f, i: f.machine.matches(f.stack[-1], "mapping"))


# ---- containers


@_does("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE")
def _build(f: Frame, i: Instruction, name: str) -> Any:
    items = _take(f, i.arg)
    if name == "BUILD_TUPLE":
        made: Any = tuple(items)
    elif name == "BUILD_LIST":
        made = items
    elif name == "BUILD_SET":
        made = f.machine.call(set, (items,), {})
    elif name == "BUILD_STRING":
        made = "".join(items)
    else:
        made = f.machine.slice(items)
    f.stack.append(made)
    return NotImplemented


@_opcode
def BUILD_MAP(f: Frame, i: Instruction) -> Any:
    items = _take(f, 2 * i.arg)
    made: dict = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        f.machine.setitem(made, key, value)
    f.stack.append(made)
    return NotImplemented


@_opcode
def BUILD_CONST_KEY_MAP(f: Frame, i: Instruction) -> Any:
    keys = f.stack.pop()
    f.stack.append(dict(zip(keys, _take(f, i.arg), strict=True)))
    return NotImplemented


HANDLERS["LIST_TO_TUPLE"] = _pushes(lambda f, i: tuple(f.stack.pop()))


@_opcode
def LIST_APPEND(f: Frame, i: Instruction) -> Any:
    value = f.stack.pop()
    f.stack[-i.arg].append(value)
    return NotImplemented


@_opcode
def SET_ADD(f: Frame, i: Instruction) -> Any:
    value = f.stack.pop()
    f.machine.call(set.add, (f.stack[-i.arg], value), {})
    return NotImplemented


@_opcode
def MAP_ADD(f: Frame, i: Instruction) -> Any:
    key, value = _take(f, 2)
    f.machine.setitem(f.stack[-i.arg], key, value)
    return NotImplemented


@_opcode
def LIST_EXTEND(f: Frame, i: Instruction) -> Any:
    values = f.stack.pop()
    f.stack[-i.arg].extend(f.machine.listed(values))
    return NotImplemented


@_opcode
def SET_UPDATE(f: Frame, i: Instruction) -> Any:
    values = f.stack.pop()
    f.machine.call(set.update, (f.stack[-i.arg], values), {})
    return NotImplemented


@_does("DICT_UPDATE", "DICT_MERGE")
def _dict_update(f: Frame, i: Instruction, name: str) -> Any:
    values = f.stack.pop()
    into = f.stack[-i.arg]
    found = f.machine.as_dict(values)
    if name == "DICT_MERGE" and any(key in into for key in found):
        key = next(key for key in found if key in into)
        raise raised(f, TypeError(f"got multiple values for keyword argument '{key}'"))
    into.update(found)
    return NotImplemented


@_opcode
def UNPACK_SEQUENCE(f: Frame, i: Instruction) -> Any:
    values = f.machine.listed(f.stack.pop())
    if len(values) != i.arg:
        few = len(values) < i.arg
        text = f"not enough values to unpack (expected {i.arg}, got {len(values)})"
        raise raised(f, ValueError(text if few else f"too many values to unpack (expected {i.arg})"))
    f.stack += reversed(values)
    return NotImplemented


@_opcode
def UNPACK_EX(f: Frame, i: Instruction) -> Any:
    f.stack += reversed(unpack_rest(f, f.machine.listed(f.stack.pop()), i.arg & 255, i.arg >> 8))
    return NotImplemented


def _converted(f: Frame, how: int) -> Any:
    convert, value = (None, str, repr, ascii)[how], f.stack.pop()
    return f.machine.call(convert, (value,), {}) if convert else value


HANDLERS["CONVERT_VALUE"] = _pushes(lambda f, i: _converted(f, i.arg))


@_opcode
def FORMAT_VALUE(f: Frame, i: Instruction) -> Any:
    spec = f.stack.pop() if i.arg & 4 else ""
    f.stack.append(f.machine.call(format, (_converted(f, i.arg & 3), spec), {}))
    return NotImplemented
