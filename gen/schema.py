"""Operator schemas as Python values: parsing, printing, and the C++ type of each argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .arg_types import TYPES


@dataclass(frozen=True)
class Arg:
    type: str  # without aliasing marks: "Tensor", "int[1]?", "SymInt[]"
    name: str
    default: str | None = None
    kwonly: bool = False
    alias: str = ""  # "a!" of Tensor(a!)

    @property
    def key(self) -> str:
        """The type with list sizes dropped and SymInt read as int, as ops/types.yaml has it."""
        return re.sub(r"\[\d+\]", "[]", self.type.replace("SymInt", "int"))

    @property
    def cpp(self) -> str:
        return TYPES[self.key].parameter

    @property
    def stored(self) -> str:
        return TYPES[self.key].value

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensors(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")

    @property
    def written(self) -> bool:
        return self.alias.endswith("!")

    def text(self) -> str:
        base = self.type
        if self.alias:
            base = re.sub(r"^Tensor", f"Tensor({self.alias})", base)
        return f"{base} {self.name}" + (f"={self.default}" if self.default is not None else "")

    def cpp_default(self) -> str:
        d = self.default
        if d is None:
            return ""
        if d == "None":
            return " = {}" if self.is_tensor or self.key == "Generator?" else " = std::nullopt"
        if d in ("True", "False"):
            return " = " + d.lower()
        if self.key.startswith("str"):
            return ' = "' + d.strip("\"'") + '"'
        if self.key in ("int[]", "int[]?"):
            if d == "[]":
                return " = {}"
            if d.startswith("["):
                return " = {" + d[1:-1] + "}"
            count = int(re.search(r"\[(\d+)\]", self.type).group(1))
            return " = {" + ", ".join([d] * count) + "}"
        if self.type.startswith("MemoryFormat"):
            return " = MemoryFormat::" + {"contiguous_format": "Contiguous", "preserve_format": "Preserve"}[d]
        return " = " + d


@dataclass(frozen=True)
class Schema:
    ns: str
    name: str
    overload: str
    args: tuple[Arg, ...]
    returns: tuple[Arg, ...]  # name may be ""

    @property
    def full(self) -> str:
        return f"{self.ns}::{self.name}" + (f".{self.overload}" if self.overload else "")

    @property
    def ident(self) -> str:
        prefix = "" if self.ns == "aten" else self.ns + "_"
        return prefix + self.name + (f"_{self.overload}" if self.overload else "")

    def text(self) -> str:
        parts, kw = [], False
        for a in self.args:
            if a.kwonly and not kw:
                parts.append("*")
                kw = True
            parts.append(a.text())
        returns = [r.text().strip() for r in self.returns]
        out = returns[0] if len(returns) == 1 else "(" + ", ".join(returns) + ")"
        return f"{self.full}({', '.join(parts)}) -> {out}"

    @property
    def cpp_return(self) -> str:
        types = [r.stored for r in self.returns]
        if not types:
            return "void"
        return types[0] if len(types) == 1 else "std::tuple<" + ", ".join(types) + ">"

    @property
    def cpp_sig(self) -> str:
        return f"{self.cpp_return}({', '.join(a.cpp for a in self.args)})"

    def cpp_params(self, defaults: bool = False, skip_self: bool = False) -> str:
        args = self.args[1:] if skip_self else self.args
        # C++ wants defaults at the end only.
        tail = len(args)
        while tail and args[tail - 1].default is not None:
            tail -= 1
        return ", ".join(
            f"{a.cpp} {safe(a.name)}" + (a.cpp_default() if defaults and i >= tail else "") for i, a in enumerate(args)
        )

    def with_(self, **changes) -> Schema:
        return replace(self, **changes)


def safe(name: str) -> str:
    """A C++ identifier for an argument name; `d` is what generated kernels call their keys."""
    return name + "_" if name in ("default", "operator", "register", "union", "auto", "bool", "float", "int", "d") else name


def split_top(text: str) -> list[str]:
    """Splits at commas outside of brackets and quotes."""
    parts, depth, current, quote = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        if c == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts


def parse_arg(text: str, kwonly: bool) -> Arg:
    head, _, default = text.partition("=")
    match = re.fullmatch(r"(\w+(?:\(\w+!?\))?\??(?:\[\d*\])?\??)\s*(\w*)", head.strip())
    if not match:
        raise ValueError(f"cannot read the argument {text!r}")
    type_, name = match.groups()
    alias = ""
    if marked := re.search(r"\((\w+!?)\)", type_):
        alias = marked.group(1)
        type_ = type_.replace(marked.group(0), "")
    arg = Arg(type_, name, default.strip() or None if default else None, kwonly, alias)
    if arg.key not in TYPES:
        raise ValueError(f"unknown type {type_!r} in {text!r}")
    return arg


def parse_schema(text: str) -> Schema:
    match = re.fullmatch(r"(?:(\w+)::)?(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)", text.strip(), re.S)
    if not match:
        raise ValueError(f"cannot read the schema {text!r}")
    ns, name, overload, args_text, returns_text = match.groups()
    args, kwonly = [], False
    for part in split_top(args_text):
        if part == "*":
            kwonly = True
        else:
            args.append(parse_arg(part, kwonly))
    returns_text = returns_text.strip()
    if returns_text.startswith("("):
        returns_text = returns_text[1:-1]
    returns = tuple(parse_arg(p, False) for p in split_top(returns_text))
    return Schema(ns or "aten", name, overload or "", tuple(args), returns)
