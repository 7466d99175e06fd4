"""Instructions of a code object, its exception table, and where in the user's text an instruction stands."""

from __future__ import annotations

import opcode

from .versions import spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from types import CodeType

# Names by which a function reads its own frame, which is another one while its bytecode is executed here.
_GLOBAL_NAMES = frozenset("locals globals eval exec vars dir breakpoint __import__ inspect traceback".split())
_ATTRIBUTES = frozenset("_getframe currentframe".split())


_CACHE, _EXTENDED_ARG = opcode.opmap["CACHE"], opcode.opmap["EXTENDED_ARG"]


class Instruction:
    """One instruction without its caches, in terms of table.py. arg: prefixes included. Where one of Python stands for several,
    those behind the first have odd offsets."""

    __slots__ = ("arg", "index", "line", "name", "next", "offset")

    def __init__(self, index: int, offset: int, name: str, arg: int, line: int):
        self.index, self.offset, self.name, self.arg, self.line = index, offset, name, arg, line
        self.next = offset + 2  # where jumps count from; set beyond the caches


class Decoded:
    """instructions; `at`: of each offset, the index of its instruction; handlers as (start, end, target, depth, lasti)."""

    def __init__(self, code: CodeType):
        self.instructions: list[Instruction] = []
        self.at: dict[int, int] = {}
        text = code.co_code
        lines: dict[int, int] = {}
        for start, end, line in code.co_lines():
            for offset in range(start, end, 2):
                lines[offset] = line or 0
        extended, begin = 0, None
        for offset in range(0, len(text), 2):
            if text[offset] == _CACHE:
                self.instructions[-1].next = offset + 2
                continue
            begin = offset if begin is None else begin
            arg = text[offset + 1] | extended
            if text[offset] == _EXTENDED_ARG:
                extended = arg << 8
                continue
            for place in range(begin, offset, 2):
                self.at[place] = len(self.instructions)
            for part, (name, value) in enumerate(spelled(text[offset], arg)):
                made = Instruction(len(self.instructions), offset + part if part else begin, name, value, lines.get(offset, 0))
                made.next = offset + 2
                self.at[offset + part] = made.index
                self.instructions.append(made)
            extended, begin = 0, None
        self.handlers = _exception_table(code.co_exceptiontable)

    def handler(self, offset: int) -> tuple[int, int, bool] | None:
        """(target, depth of the stack, whether the offset is pushed) for an exception that is raised there."""
        for start, end, target, depth, lasti in self.handlers:
            if start <= offset < end:
                return target, depth, lasti
        return None

    def reached(self, offset: int) -> Iterator[int]:
        """The indices of the instructions at which handlers begin that get an exception which is raised there, and those that get
        it when these raise it again."""
        while (found := self.handler(offset)) is not None:
            at = self.at[found[0]]
            yield at
            while self.instructions[at].name not in ("RERAISE", "CLEANUP_THROW"):
                at += 1
            offset = self.instructions[at].offset

    def catches(self, offset: int) -> bool:
        """Whether a `try` or `with` of the program would get an exception that is raised there.

        Its handlers begin with PUSH_EXC_INFO; others tidy up and raise again: those of comprehensions, and of generators.
        """
        return any(self.instructions[at].name == "PUSH_EXC_INFO" for at in self.reached(offset))

    def tries(self, offset: int) -> bool:
        """Whether a `try` of the program would, not only a `with`."""
        for at in self.reached(offset):
            if self.instructions[at].name == "PUSH_EXC_INFO" and self.instructions[at + 1].name != "WITH_EXCEPT_START":
                return True
        return False


def _exception_table(table: bytes) -> list[tuple[int, int, int, int, bool]]:
    """Its entries in bytes: each of four numbers of six bits a byte, the most significant first."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = (value << 6) | (byte & 63)
        if not byte & 64:
            numbers.append(value)
            value = 0
    entries = []
    for i in range(0, len(numbers), 4):
        start, size, target, depth = numbers[i : i + 4]
        entries.append((2 * start, 2 * (start + size), 2 * target, depth >> 1, bool(depth & 1)))
    return entries


_known: dict[CodeType, Decoded] = {}


def decode(code: CodeType) -> Decoded:
    """The instructions of a code object, read once."""
    found = _known.get(code)
    if found is None:
        found = _known[code] = Decoded(code)
    return found


def forget() -> None:
    """Lets go of the code objects that were read."""
    _known.clear()


def reads_its_frame(code: CodeType) -> str | None:
    """A name by which the code may read its own frame, if there is one."""
    for i in decode(code).instructions:
        if i.name == "LOAD_GLOBAL" and code.co_names[i.arg >> 1] in _GLOBAL_NAMES:
            return code.co_names[i.arg >> 1]
        if i.name in ("LOAD_METHOD", "LOAD_ATTR") and code.co_names[i.arg] in _ATTRIBUTES:
            return code.co_names[i.arg]
    return None


def unknown(code: CodeType, known: Container[str]) -> str | None:
    """An opcode of the code that is not among the known ones, if there is one."""
    return next((i.name for i in decode(code).instructions if i.name not in known), None)


def line_of(code: CodeType, offset: int) -> str:
    """File and line of an instruction, and the line's text."""
    import linecache

    positions = list(code.co_positions())
    line = positions[offset // 2][0] if offset // 2 < len(positions) else code.co_firstlineno
    text = linecache.getline(code.co_filename, line or 0).strip()
    return f"{code.co_filename}:{line}" + (f": {text}" if text else "")


def place(code: CodeType, offset: int) -> str:
    """File and line of an instruction, the line's text, and a caret under what it stands for."""
    import linecache  # which takes longer to import than all of this package

    positions = list(code.co_positions())
    line, _, begin, end = positions[offset // 2] if offset // 2 < len(positions) else (code.co_firstlineno, None, None, None)
    text = linecache.getline(code.co_filename, line or 0).rstrip("\n")
    where = f'File "{code.co_filename}", line {line}, in {code.co_name}'
    if not text.strip():
        return where
    stripped = text.lstrip()
    shown = f"{where}\n    {stripped}"
    if begin is None:
        return shown
    indent = len(text) - len(stripped)
    width = max(1, (end if end is not None and end > begin else len(text)) - begin)
    return f"{shown}\n    {' ' * max(0, begin - indent)}{'^' * min(width, len(text) - begin)}"
