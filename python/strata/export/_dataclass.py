"""Dataclasses as nests."""

from __future__ import annotations

import dataclasses

from strata.utils._pytree import register_pytree_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_classes: dict[str, type] = {}  # by the names that files have for them


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Makes a dataclass a nest of its fields, as an input or output of exported modules.

    serialized_type_name: what a saved program calls it; module and name unless given. ValueError for what is no dataclass or is registered.
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"Only dataclasses can be registered with this function: {cls}")
    names = [f.name for f in dataclasses.fields(cls)]
    register_pytree_node(cls, lambda value: ([getattr(value, n) for n in names], names), lambda values, context: cls(**dict(zip(context, values, strict=True))))
    _classes[serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"] = cls


def name_of(cls: type) -> str | None:
    return next((name for name, known in _classes.items() if known is cls), None)


def class_named(name: str) -> type | None:
    return _classes.get(name)
