"""Programs for many sizes: a capture whose sizes are symbols, and what shows that it is right for others.

Sizes of values are told to Python as `Sym`s: numbers that remember their expression in sizes of values. Where one is an argument of an
operator, the expression takes the number's place in the text; where Python asks one a question, a `check` is put there. What a
capture of the module at other sizes gives must be what the program gives for these, operator by operator.
"""

from __future__ import annotations

import linecache
import operator
import re

import strata
from strata import _C
from strata._bytecode.sizes import Sizes, Sym, concrete, has_sym, syms
from strata._patching import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata import Tensor

    from .dynamic_shapes import Entry, Symbol

_SIGNS = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%"}
_ASKED = {operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_DEFINED = re.compile(r"(%\d+): (\w+)\[([^\];]*)")


def _line() -> tuple[str, str]:
    """The user's line that is executed: "model.py:12", its text."""
    from strata._frames import user_frame

    frame = user_frame()
    if frame is None:
        return "", ""
    name = frame.f_code.co_filename
    return f"{name}:{frame.f_lineno}", linecache.getline(name, frame.f_lineno).strip()


def _text(value: Any) -> str:
    return value.text if type(value) is Sym else str(value)


class Sizing:
    """One capture's symbols: the program of its `Sym`s. varying: dims of each value that are known to vary; None: all may."""

    late: dict = {}  # numbers that are read when the graph has run: there are none

    def __init__(self, entries: list[dict[int, Entry]], names: list[str], varying: dict[str, set[int]] | None) -> None:
        self.entries, self.names, self.varying = entries, names, varying
        self.inputs: dict[int, int] = {}  # by id of the tensor
        self.checks: list[tuple[int, str, str]] = []  # values before it, the condition, the line
        self.sized: list[tuple[int, int, list, str]] = []  # values before and after, numbers that were given, the operator
        self.asked: set[str] = set()
        self.keep: list[Any] = []

    # ---- numbers

    def symbol(self, value: int, text: str) -> Sym:
        return Sym(self, 0, value, text)

    def lift(self, function: Callable, args: tuple) -> Any:
        found = function(*concrete(args))
        if function in _SIGNS and all(type(v) is Sym or type(v) is int for v in args):
            return self.symbol(found, f"({_text(args[0])} {_SIGNS[function]} {_text(args[1])})")
        if function is operator.neg:
            return self.symbol(found, f"(0 - {_text(args[0])})")
        if function is operator.pos:
            return args[0]
        if function in _ASKED and all(type(v) is Sym or type(v) is int for v in args):
            sign = _ASKED[function] if found else _NEGATED[_ASKED[function]]
            self.check(f"{_text(args[0])} {sign} {_text(args[1])}")
            return found
        for sym in syms(args):
            sym.settle()
        return found

    def settle(self, sym: Sym) -> int:
        self.check(f"{sym.text} == {sym.value}")
        return sym.value

    def check(self, text: str) -> None:
        if text in self.asked:
            return
        self.asked.add(text)
        place, code = _line()
        self.checks.append((_C._recording_count(), text, f"{place}: `{code}`" if place else "strata"))

    # ---- sizes of tensors

    def size(self, t: Tensor, dim: int, n: int) -> Any:
        if _C._recording() is None:
            return n
        value = _C._recording_value(t)
        place = self.inputs.get(id(t))
        if place is not None:
            varies = dim in self.entries[place]
        else:
            varies = value >= 0 and id(t) not in self.outside and (self.varying is None or dim in self.varying.get(f"%{value}", ()))
        return self.symbol(n, f"%{value}.size({dim})") if varies and value >= 0 else n

    def begin(self, tensors: list) -> None:
        self.inputs = {id(t): i for i, t in enumerate(tensors)}
        self.keep = tensors

    outside: set[int] = set()  # tensors that the module holds


def _called(sizing: Sizing, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operator that gets symbols: it is called with numbers, and what they are is noted."""
    before = _C._recording_count()
    found = func(*concrete(args), **concrete(kwargs))
    sizing.sized.append((before, _C._recording_count(), list(_numbers((args, kwargs))), getattr(func, "__name__", "an operator")))
    return found


def _numbers(value: Any) -> Any:
    """The ints among arguments, in order, Syms included."""
    if type(value) is Sym or type(value) is int:
        yield value
    elif isinstance(value, slice):
        yield from _numbers((value.start, value.stop, value.step))
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _numbers(v)
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))


class _Patched:
    """A context in which tensors tell their sizes as symbols."""

    def __init__(self, sizing: Sizing, tensors: list) -> None:
        self.sizing, self.patches = sizing, Patches()
        sizing.begin(tensors)

    def __enter__(self) -> None:
        sizing = self.sizing
        plain, item, plain_length = strata.Tensor.shape.__get__, strata.Tensor.__getitem__, strata.Tensor.__len__

        def shape(t: Tensor) -> Any:
            sizes = plain(t)
            found = [sizing.size(t, d, n) for d, n in enumerate(sizes)]
            return Sizes(found) if has_sym(found) else sizes

        def size_of(t: Tensor, dim: Any = None) -> Any:
            return shape(t) if dim is None else shape(t)[dim]

        def numel(t: Tensor) -> Any:
            n: Any = 1
            for s in shape(t):
                n = s if type(n) is int and n == 1 else n * s
            return n

        def length(t: Tensor) -> int:  # which Python wants as an int
            n = plain_length(t)
            first = sizing.size(t, 0, n)
            return first.settle() if type(first) is Sym else first

        def function(kind: Any, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            return _called(sizing, func, args, kwargs or {})

        def get_item(t: Tensor, key: Any) -> Any:
            return _called(sizing, item, (t, key), {}) if has_sym(key) else item(t, key)

        self.patches.__enter__()
        self.patches.put(Sym, "__torch_function__", lambda: classmethod(function))
        self.patches.put(strata.Tensor, "__getitem__", lambda: get_item)
        # A text, as of an error's message, is no condition.
        for kind, text in ((Sym, lambda s: repr(s.value)), (Sizes, lambda s: repr(strata.Size(concrete(tuple(s)))))):
            for name in ("__repr__", "__str__"):
                self.patches.put(kind, name, lambda text=text: text)
        self.patches.put(Sym, "__format__", lambda: lambda s, spec: format(s.value, spec))
        for name, made in (("shape", property(shape)), ("size", size_of), ("numel", numel), ("nelement", numel), ("__len__", length)):
            self.patches.put(strata.Tensor, name, lambda made=made: made)

    def __exit__(self, *exception: object) -> None:
        self.patches.__exit__(*exception)


# ---- the text


def _ints(line: str) -> list[tuple[int, int, int]]:
    """The whole numbers among the arguments of a call: where each begins and ends, and its value."""
    start = line.index("(", line.index("::"))
    end = line.find("  # ")
    found = re.finditer(r"(?<![\w.%:'])-?\d+(?![\w.:'])", line[: end if end >= 0 else len(line)])
    return [(m.start(), m.end(), int(m.group())) for m in found if m.start() > start]


def _placed(lines: list[str], at: list[int], numbers: list, name: str) -> None:
    """Puts the expressions in the place of their numbers, in the lines of one call of Python's."""
    places = [(i, *found) for i in at for found in _ints(lines[i])]
    values = [place[3] for place in places]
    wanted = concrete(numbers)
    starts = [k for k in range(len(values) - len(wanted) + 1) if values[k : k + len(wanted)] == wanted]
    chosen: list[tuple[Any, Any]] = []
    if starts:
        chosen = [(places[starts[0] + k], n) for k, n in enumerate(numbers) if type(n) is Sym]
    else:
        for value in {n.value for n in numbers if type(n) is Sym}:
            fits = [p for p in places if p[3] == value]
            given = [n for n in numbers if (n.value if type(n) is Sym else n) == value]
            if len(fits) != len(given):
                raise NotImplementedError(
                    f"export: {name} gets {next(n.text for n in given if type(n) is Sym)} = {value}, whose place among its operators' arguments is "
                    "not known; give an example with another size"
                )
            chosen += [(p, n) for p, n in zip(fits, given, strict=True) if type(n) is Sym]
    for (i, begin, end, _), n in sorted(chosen, key=lambda c: c[0], reverse=True):
        lines[i] = lines[i][:begin] + n.text + lines[i][end:]


def written(text: str, sizing: Sizing, header: list[str]) -> str:
    """The text of the program: expressions where numbers were, checks, and which sizes vary."""
    lines = text.splitlines()
    of = {}  # of each value, the line that defines it
    for i, line in enumerate(lines):
        for name, _, _ in _DEFINED.findall(line.partition("  # ")[0]):
            of.setdefault(int(name[1:]), i)
    for before, after, numbers, name in sizing.sized:
        at = sorted({of[v] for v in range(before, after) if v in of and "::" in lines[of[v]]})
        _placed(lines, at, numbers, name)
    below: dict[int, list[str]] = {}
    for before, condition, place in sizing.checks:
        last = max((of[v] for v in range(before) if v in of), default=0)
        if lines[last].endswith("{") and last:  # in a block: its first line
            pass
        indent = " " * (len(lines[last]) - len(lines[last].lstrip()) or 2)
        if lines[last].rstrip().endswith("{") and last:
            indent += "  "
        below.setdefault(last, []).append(f"{indent}check {condition}  # {place}")
    made = []
    for i, line in enumerate(lines):
        made.append(line)
        if i == 0:
            made += header
        made += below.get(i, [])
    return "\n".join(made) + "\n"


_SIZE = re.compile(r"(%[0-9]{1,9})\.size\(([0-9]|[1-9][0-9])\)")


def ranks(text: str) -> dict[str, int]:
    """How many dims each value of a graph has."""
    return {value: len(sizes.split(",")) if sizes.strip() else 0 for value, _, sizes in _DEFINED.findall(text)}


def is_size(text: str, known: dict[str, int]) -> bool:
    """Whether a text is an expression of sizes of these values, as `lift` writes them."""
    if len(text) > 4096 or not all(int(dim) < known.get(value, 0) for value, dim in _SIZE.findall(text)):
        return False
    operand = r"(?:s|[0-9]{1,18})"
    bare = _SIZE.sub("s", text) if "s" not in _SIZE.sub("", text) else ""
    while (smaller := re.sub(rf"\((?:s (?:[+\-*%]|//) {operand}|{operand} (?:[+\-*%]|//) s)\)", "s", bare)) != bare:
        bare = smaller
    return bare == "s"


def marked(text: str, varying: dict[str, set[int]]) -> str:
    """The text whose types say which sizes vary."""

    def mark(match: re.Match) -> str:
        dims = varying.get(match.group(1), ())
        sizes = [("?" if d in dims else "") + s.strip() for d, s in enumerate(match.group(3).split(",")) if s.strip()]
        return f"{match.group(1)}: {match.group(2)}[{', '.join(sizes)}"

    return "\n".join(_DEFINED.sub(mark, head) + hash_ + span for head, hash_, span in (line.partition("  # ") for line in text.splitlines())) + "\n"


def differing(a: str, b: str) -> dict[str, set[int]] | None:
    """Dims whose sizes differ between two captures of one program; None where these are of other operators."""
    if [re.sub(r"-?\d+", "", line.partition("  # ")[0]) for line in a.splitlines()] != [
        re.sub(r"-?\d+", "", line.partition("  # ")[0]) for line in b.splitlines()
    ]:
        return None
    found: dict[str, set[int]] = {}
    for (name, _, left), (_, _, right) in zip(_DEFINED.findall(a), _DEFINED.findall(b)):
        pairs = zip(left.split(","), right.split(","))
        dims = {d for d, (x, y) in enumerate(pairs) if x.strip() != y.strip()}
        if dims:
            found[name] = dims
    return found


# ---- sizes to try


def points(symbols: list[Symbol]) -> list[dict[str, int]]:
    """Sizes at which a program is compared with the module: first some that differ from the example and from each other, then the ends."""

    def within(s: Symbol, value: int) -> int:
        return max(s.low, value) if s.high is None else min(max(s.low, value), s.high)

    other = {}
    taken: set[int] = set()
    for s in symbols:
        choices = [s.value + 1, s.value + 2, s.value + 3, s.value + 5, s.value - 1, s.value - 2, s.low, s.high or s.low]
        choices = [within(s, c) for c in choices]
        other[s.name] = next((c for c in choices if c != s.value and c not in taken), s.value)
        taken.add(other[s.name])
    ends = [{s.name: s.low for s in symbols}]
    ends.append({s.name: within(s, 4 * s.value + 7 + 2 * i) if s.high is None or s.high > 4096 else s.high for i, s in enumerate(symbols)})
    found = [other]
    for point in ends:
        if point not in found:
            found.append(point)
    return found


def shown(point: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in point.items())


def for_people(text: str, names: list[str]) -> str:
    """An expression with the arguments' names."""
    return re.sub(r"%(\d+)\.size", lambda m: f"{names[int(m.group(1))]}.size" if int(m.group(1)) < len(names) else m.group(), text)
