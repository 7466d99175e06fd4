"""The rows of a file of the table: read from YAML, and checked against the declaration of their keys."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import get_type_hints

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Refuses a key that stands twice, of which YAML would keep the last without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twice = next((k for k in keys if keys.count(k) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice in one entry", node.start_mark)
        return super().construct_mapping(node, deep)


@cache
def read(path: Path) -> list[tuple[dict, int]]:
    """The rows of a file of the table, and their lines."""
    text = path.read_text()
    lines = [i + 1 for i, line in enumerate(text.splitlines()) if line.startswith(("- op:", "- kernel:", "- formula:", "- type:"))]
    try:
        found = yaml.load(text, Loader=Loader) or []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise SystemExit(f"ops/{path.name}:{mark.line + 1}:{mark.column + 1}: {error.problem}") from error
    return list(zip(found, lines, strict=True))


@dataclass(frozen=True)
class Operand:
    """An operand or a result of a kernel: `index[p..,i]:int64`, `indices:row:int64`."""

    name: str
    dims: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """The mark that names one; none where it is the kernel's."""
        return next((m for m in self.marks if m not in ("row", "held", "shared")), "")

    @property
    def fixed_dims(self) -> int:
        """How many dims it has; -1 where a group says."""
        return -1 if any(d.endswith("..") for d in self.dims) else len(self.dims)

    def __str__(self) -> str:
        return ":".join([self.name + (f"[{','.join(self.dims)}]" if self.dims else ""), *self.marks])


def operand(word: str) -> Operand:
    match = re.fullmatch(r"(\w+)(?:\[([\w.,]*)\])?((?::\w+)*)", word)
    if not match:
        raise ValueError(f"operands written name, name:dtype or name[dim,dim..]:dtype, which {word!r} is not")
    return Operand(match[1], tuple(d for d in (match[2] or "").split(",") if d), tuple(match[3].split(":")[1:]))


def text(value) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("a text")
    return str(value).strip()


def flag(value) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def number(value) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("an integer")
    return value


def mapping(value) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("a mapping {name: text}")
    return {str(k): text(v) for k, v in value.items()}


def listed(value) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text(v) for v in value)
    return tuple(text(value).split())


def either(*makers):
    def make(value):
        expected = []
        for maker in makers:
            try:
                return maker(value)
            except ValueError as error:
                expected.append(str(error))
        raise ValueError(", or ".join(expected))
    return make


# How a value of YAML becomes one of a field's type; what is raised says what was expected.
MAKERS = {
    str: text, bool: flag, int: number, dict[str, str]: mapping, tuple[str, ...]: listed,
    tuple[Operand, ...]: lambda value: tuple(operand(w) for w in listed(value)),
    bool | str: either(flag, text), dict[str, str] | str: either(mapping, text),
}
NAMES = {str: "text", bool: "flag", int: "number", dict[str, str]: "mapping", tuple[str, ...]: "words", tuple[Operand, ...]: "operands",
         bool | str: "flag or text", dict[str, str] | str: "mapping or text"}


@dataclass(frozen=True)
class Key:
    """What a key of the table means, which words it takes (any, if none), beside which bodies it may stand (every one, if none), and
    what holds without it."""

    meaning: str
    words: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    default: str = ""
    group: str = ""  # the table of docs/add-an-operator.md that lists it


def key(meaning: str, default=MISSING, *, words: str = "", beside: str = "", shown: str = "", group: str = "") -> Field:
    """A field of a row that is a key of the table; without a default it is required."""
    made = Key(meaning, tuple(words.split()), tuple(beside.split()), shown or ("required" if default is MISSING else ""), group)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"key": made}, kw_only=True)
    return field(default=default, metadata={"key": made}, kw_only=True)


@cache
def keys(row: type) -> dict[str, tuple[Field, object, Key]]:
    """The keys of a kind of row: the field, its type, what is declared of it."""
    hints = get_type_hints(row)
    return {f.name: (f, hints[f.name], f.metadata["key"]) for f in fields(row) if "key" in f.metadata}


def typed(row: type, raw: dict):
    """A row of this kind. Raises ValueError, which says what was expected and what came."""
    known, values = keys(row), {}
    bodies = [n for n, (_, _, said) in known.items() if said.group == "body" and n in raw]
    for name, value in raw.items():
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise ValueError(f"unknown key {name!r}" + (f"; did you mean {near[0]!r}?" if near else f"; the keys are {', '.join(known)}"))
        _, type_, said = known[name]
        try:
            made = MAKERS[type_](value)
        except ValueError as error:
            raise ValueError(f"{name}: expected {error}, got {value!r}") from error
        wrong = [w for w in (made if isinstance(made, tuple) else (made,)) if said.words and w not in said.words]
        if wrong:
            raise ValueError(f"{name}: expected {'some' if isinstance(made, tuple) else 'one'} of {', '.join(said.words)}, got {wrong[0]!r}")
        if said.beside and bodies and bodies[0] not in said.beside:
            raise ValueError(f"{name}: expected in an entry with {', '.join(said.beside)}, got one with {bodies[0]}")
        values[name] = made
    for name, (f, _, _) in known.items():
        if f.default is MISSING and f.default_factory is MISSING and not values.get(name):
            raise ValueError(f"{name}: expected this key, got {', '.join(raw)}")
    return row(**values, said=frozenset(raw))


def page(row: type, group: str) -> list[str]:
    """The keys of a group as a table in Markdown."""
    if group == "body":
        return ["| key | meaning |", "|---|---|", *(f"| `{n}` | {said.meaning} |" for n, (_, _, said) in keys(row).items() if said.group == group)]
    lines = ["| key | type | beside | meaning | default |", "|---|---|---|---|---|"]
    for name, (_, type_, said) in keys(row).items():
        if said.group == group:
            bodies = [n for n, (_, _, other) in keys(row).items() if other.group == "body"]
            left = [b for b in bodies if b not in said.beside]
            few = "all but " if said.beside and len(left) < 3 else ""
            beside = few + " ".join(f"`{b}`" for b in (left if few else said.beside)) or "all"
            lines.append(f"| `{name}` | {NAMES[type_]} | {beside} | {said.meaning} | {said.default or 'none'} |")
    return lines
