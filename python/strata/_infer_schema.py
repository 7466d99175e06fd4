"""Schemas from the annotations of Python functions."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["infer_schema"]


def _base_names() -> dict:
    return {
        strata.Tensor: "Tensor",
        int: "SymInt",
        float: "float",
        bool: "bool",
        str: "str",
        strata.dtype: "ScalarType",
        strata.device: "Device",
        strata.Generator: "Generator",
    }


def _is_union(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return origin is typing.Union or origin is getattr(types, "UnionType", None)


def _type_text(kind: Any, where: str) -> str:
    names = _base_names()
    if kind in names:
        return names[kind]
    if _is_union(kind):
        parts = typing.get_args(kind)
        rest = [p for p in parts if p is not type(None)]
        if set(rest) in ({int, float}, {int, float, bool}, {int, float, bool, complex}):
            text = "Scalar"
        elif len(rest) == 1:
            text = _type_text(rest[0], where)
        else:
            raise _unsupported(kind, where)
        return text + ("?" if len(rest) < len(parts) else "")
    if typing.get_origin(kind) in (list, collections.abc.Sequence):
        (item,) = typing.get_args(kind) or (None,)
        text = _type_text(item, where)
        if text.rstrip("?") in ("Tensor", "SymInt", "float", "bool"):
            return text + "[]"
    raise _unsupported(kind, where)


def _unsupported(kind: Any, where: str) -> ValueError:
    return ValueError(
        f"infer_schema(func): {where} has the type {kind}, which is not supported; use Tensor, int, float, bool, str, "
        "strata.dtype, strata.device, numbers (int | float), lists of them, or Optional of any; or pass schema="
    )


def _default_text(value: Any, where: str) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return "[" + ", ".join(str(int(v)) for v in value) + "]"
    raise ValueError(f"infer_schema(func): {where} has the default {value!r}; use a number, bool, str, None or list of ints")


def _returns_text(kind: Any) -> str:
    if kind is None or kind is type(None):
        return "()"
    if typing.get_origin(kind) is tuple:
        parts = typing.get_args(kind)
        if Ellipsis in parts:
            raise _unsupported(kind, "the result")
        return "(" + ", ".join(_type_text(p, "the result") for p in parts) + ")"
    return _type_text(kind, "the result")


def infer_schema(
    prototype_function: Callable, /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function, from its annotations: "(Tensor x, SymInt n=1) -> Tensor".

    mutates_args: names of arguments that it writes, or "unknown" for all tensors. ValueError for annotations that are
    missing or have no counterpart, and for names that are no tensor arguments.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    written = mutates_args if mutates_args == "unknown" else {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if written != "unknown" and (unknown := written - set(signature.parameters)):
        raise ValueError(f"infer_schema(func): mutates_args names {sorted(unknown)}, which are no arguments of the function")
    parts, keywords = [], False
    for index, parameter in enumerate(signature.parameters.values()):
        name = parameter.name
        where = f"the argument '{name}'"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): {where} stands for any number of arguments; name them one by one")
        if name not in hints:
            raise ValueError(f"infer_schema(func): {where} must have a type annotation")
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            parts.append("*")
            keywords = True
        text = _type_text(hints[name], where)
        if text.startswith("Tensor") and (written == "unknown" or name in written):
            text = text.replace("Tensor", f"Tensor(a{index}!)", 1)
        elif written != "unknown" and name in written:
            raise ValueError(f"infer_schema(func): mutates_args names {where}, which is no tensor")
        default = "" if parameter.default is parameter.empty else f"={_default_text(parameter.default, where)}"
        parts.append(f"{text} {name}{default}")
    if "return" not in hints:
        raise ValueError("infer_schema(func): the result must have a type annotation; use None where there is none")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns_text(hints['return'])}"
