"""Types of formulas: what converts to what, and which overload a call means.

Types are those of schemas ("Tensor?", "int[]", "ScalarType"), a tuple "(Tensor, Tensor)", and "None", "[]" (a list without
elements), "int[][]", "ScalarType[]" (facts of a list of tensors), "grads" (the gradients of all results), "launches" (of
kernels that write).
"""

from __future__ import annotations

from dataclasses import dataclass

from .arg_types import TYPES
from .schema import Arg, split_top

# C++ types of locals that are no types of schema arguments.
STORED = {"int[][]": "std::vector<DimVec>", "ScalarType[]": "std::vector<DType>", "launches": "eager::Launches"}
ELEMENTS = {t: t.removesuffix("[]") for t in [*TYPES, *STORED] if t.endswith("[]")}


class FormulaError(ValueError):
    """What is wrong with the text of a formula."""


@dataclass(frozen=True)
class Value:
    code: str
    type: str
    literal: object = None  # of a number that the text spells out


@dataclass(frozen=True)
class Function:
    """What a text may call. `kind`: operator (of the table), writer (one that writes its arguments), kernel, definition (table
    text), primitive, fact (what headers of tensors say), reader (of values) or helper (C++)."""

    name: str
    args: tuple[Arg, ...]
    result: str
    code: str
    kind: str
    overload: str = ""
    entry: str = ""  # full name of the operator's entry
    rows: bool = False  # of a kernel: over rows
    draws: bool = False  # of a kernel: over words of a generator's stream

    def text(self) -> str:
        return f"{self.name}{'.' + self.overload if self.overload else ''}({', '.join(a.text() for a in self.args)})"


def parts_of(type_: str) -> list[str]:
    """The types in a tuple's."""
    return split_top(type_[1:-1]) if type_.startswith("(") else [type_]


def stored(type_: str) -> str:
    """The C++ type of a local."""
    if type_ == "()":
        return "void"
    if type_.startswith("("):
        return f"std::tuple<{', '.join(stored(t) for t in parts_of(type_))}>"
    return STORED.get(type_) or TYPES[type_].value


def passed(type_: str) -> str:
    """The C++ type of a parameter."""
    return f"const {STORED[type_]}&" if type_ in STORED else "const Grads&" if type_ == "grads" else TYPES[type_].parameter


def signature(text: str, kind: str) -> Function:
    """A function from "name(int[] sizes, bool keepdim=False) -> Tensor"."""
    head, _, result = text.rpartition("->")
    name, _, rest = head.strip().partition("(")
    args = []
    for part in split_top(rest.rstrip()[:-1]):
        left, _, default = part.partition("=")
        type_, arg = left.split()
        args.append(Arg(type_, arg, default or None))
    return Function(name, tuple(args), result.strip(), f"formulas::{name}", kind)


def fit(value: Value, want: str, one: bool = False) -> tuple[int, str] | None:
    """The cost and the code of a value where a type is expected; None where it does not convert. `one`: a number may stand
    for a list of it."""
    have = value.type
    if have == want:
        return 0, value.code
    base = want.removesuffix("?")
    if want != base:
        if have == "None":
            return 1, {"Tensor": "Tensor()", "Generator": "Generator()"}.get(base, "std::nullopt")
        inner = fit(value, base, one)
        if inner is None:
            return None
        return inner[0] + 1, f"OptIntArrayRef(IntArrayRef({inner[1]}))" if base == "int[]" else inner[1]
    if have == "[]" and want in ELEMENTS:
        return 1, f"{stored(want)}{{}}"
    if want == "int[]" and have == "int" and one:
        return 3, f"IntArrayRef(int64_t({value.code}))"
    if want == "float" and have == "int":
        return 2, f"double({value.code})"
    if want == "Scalar" and have in ("int", "float", "bool"):
        return 1 + (have == "bool"), f"Scalar({value.code})"
    if want == "Tensor?[]" and have == "Tensor[]":
        return 1, value.code
    return None


def default(arg: Arg) -> str:
    return arg.cpp_default().removeprefix(" = ") if arg.default != "None" else f"{arg.stored}()"


def bind(f: Function, args: list[Value], named: dict[str, Value]) -> tuple[tuple[int, int], list[str]] | str:
    """The cost and the arguments' codes of a call, or why it does not fit."""
    places = [a for a in f.args if not a.kwonly]
    if len(args) > len(places):
        return f"it takes {len(places)} by position"
    given = dict(zip((a.name for a in places), args, strict=False))
    for name, value in named.items():
        if name in given:
            return f"{name} is given twice"
        if all(a.name != name for a in f.args):
            return f"it has no argument {name}"
        given[name] = value
    cost, missing, codes = 0, 0, []
    for a in f.args:
        key = a.key if a.type not in STORED and a.type != "grads" else a.type
        if a.name not in given:
            if a.default is None:
                return f"{a.name} is missing"
            missing += 1
            codes.append(default(a))
            continue
        found = fit(given[a.name], key, "[1]" in a.type)
        if found is None:
            got = given[a.name].type
            hint = ", which may be None: test it first" if got == key + "?" else ""
            return f"{a.name}: expected {key}, got {got}{hint}"
        cost += found[0]
        codes.append(found[1])
    return (cost, missing), codes


def choose(functions: list[Function], args: list[Value], named: dict[str, Value]) -> tuple[Function, list[str]]:
    """The overload that a call means: the one with the fewest conversions, then with the fewest defaults."""
    found, reasons = [], []
    for f in functions:
        bound = bind(f, args, named)
        if isinstance(bound, str):
            reasons.append(f"{f.text()}: {bound}")
        else:
            found.append((*bound, f))
    if not found:
        raise FormulaError("; ".join(reasons))
    found.sort(key=lambda x: x[0])
    if len(found) > 1 and found[0][0] == found[1][0]:
        raise FormulaError(f"the call is ambiguous between {found[0][2].text()} and {found[1][2].text()}; name the overload, as in "
                           f"{found[0][2].name}.{found[0][2].overload or 'default'}(...)")
    _, codes, f = found[0]
    return f, codes


def joined(a: str, b: str) -> str | None:
    """The type of a value that is one of two."""
    if a == b:
        return a
    for x, y in ((a, b), (b, a)):
        if x == "None":
            return y if y.endswith("?") else y + "?"
        if x == y + "?":
            return x
        if x == "[]" and y in ELEMENTS:
            return y
        if x in ("int", "float") and y == "Scalar":
            return y
        if x == "int" and y == "float":
            return y
        if x == "Tensor[]" and y == "Tensor?[]":
            return y
    return None
