"""Opcodes of the running version of Python, in terms of those that table.py does.

These are CPython 3.11's; what later versions spell in another way is told here. One instruction may stand for several.
"""

from __future__ import annotations

import opcode
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Spelled = Iterable[tuple[str, int]]  # opcodes with their arguments

_INTRINSICS = {3: "STOPITERATION_ERROR", 5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}


def _attribute(arg: int, place: int) -> tuple[str, int]:
    """A read of the name at a place, whose lowest bit of the argument says whether it is for a call."""
    return ("LOAD_METHOD" if arg & 1 else "LOAD_ATTR"), place


# An iterator that has ended leaves nothing, so a loop goes on behind the END_FOR that would take it; likewise SEND.
_OF_312: dict[str, Callable[[int], Spelled]] = {
    "BINARY_SLICE": lambda arg: [("BUILD_SLICE", 2), ("BINARY_SUBSCR", 0)],
    "CALL_INTRINSIC_1": lambda arg: [(_INTRINSICS.get(arg, "CALL_INTRINSIC_1"), 0)],
    "COMPARE_OP": lambda arg: [("COMPARE_OP", arg >> 4)],
    "FOR_ITER": lambda arg: [("FOR_ITER", arg + 1)],
    "LOAD_ATTR": lambda arg: [_attribute(arg, arg >> 1)],
    "LOAD_FAST_CHECK": lambda arg: [("LOAD_FAST", arg)],
    "LOAD_SUPER_ATTR": lambda arg: [("LOAD_SUPER", arg & 2), _attribute(arg, arg >> 2)],
    "RETURN_CONST": lambda arg: [("LOAD_CONST", arg), ("RETURN_VALUE", 0)],
    "SEND": lambda arg: [("SEND", arg + 1)],
    "STORE_SLICE": lambda arg: [("BUILD_SLICE", 2), ("STORE_SUBSCR", 0)],
    **{f"POP_JUMP_IF_{what}": lambda arg, to=f"POP_JUMP_FORWARD_IF_{what}": [(to, arg)] for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")},
}
# What is called lies below its NULL, where 3.11 has it above.
_OF_313: dict[str, Callable[[int], Spelled]] = {
    **_OF_312,
    "CALL_KW": lambda arg: [("POP_KW_NAMES", 0), ("CALL", arg)],
    "COMPARE_OP": lambda arg: [("COMPARE_OP", arg >> 5), *([("TO_BOOL", 0)] if arg & 16 else [])],
    "FOR_ITER": lambda arg: [("FOR_ITER", arg + 2)],
    "FORMAT_SIMPLE": lambda arg: [("FORMAT_VALUE", 0)],
    "FORMAT_WITH_SPEC": lambda arg: [("FORMAT_VALUE", 4)],
    "LOAD_FAST_LOAD_FAST": lambda arg: [("LOAD_FAST", arg >> 4), ("LOAD_FAST", arg & 15)],
    "PUSH_NULL": lambda arg: [("PUSH_NULL", 0), ("SWAP", 2)],
    "STORE_FAST_LOAD_FAST": lambda arg: [("STORE_FAST", arg >> 4), ("LOAD_FAST", arg & 15)],
    "STORE_FAST_STORE_FAST": lambda arg: [("STORE_FAST", arg >> 4), ("STORE_FAST", arg & 15)],
}
_VERSIONS: dict[tuple[int, int], dict[str, Callable[[int], Spelled]]] = {(3, 11): {}, (3, 12): _OF_312, (3, 13): _OF_313}
_spellings = _VERSIONS.get(sys.version_info[:2], {})


def supported() -> bool:
    """Whether the opcodes of this version of Python are known."""
    return sys.version_info[:2] in _VERSIONS and sys.implementation.name == "cpython"


def known_versions() -> str:
    return ", ".join(f"{major}.{minor}" for major, minor in _VERSIONS)


def spelled(code: int, arg: int) -> Spelled:
    """What an instruction does, in opcodes of table.py."""
    name = opcode.opname[code]
    found = _spellings.get(name)
    return found(arg) if found is not None else [(name, arg)]
