"""Settings by PyTorch's names that change nothing here: they keep what is written, so that programs which set them run."""

from __future__ import annotations

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Flags:
    """Values by name, in groups with a dot. Any name may be written; AttributeError for reading one that was not.

    refused: names of hooks that a program expects to be called: NotImplementedError for writing anything but None.
    """

    def __init__(self, place: str, values: dict[str, Any], refused: str = "") -> None:
        own = vars(self)
        own["_place"], own["_refused"] = place, frozenset(refused.split())
        for name, value in values.items():
            own[name] = Flags(f"{place}.{name}", value) if isinstance(value, dict) else value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_refused", ()) and value is not None:
            raise NotImplementedError(
                f"{self._place}.{name}: passes over PyTorch's own graphs are not called; give strata.compile a backend of your own, "
                "which gets the captured graph"
            )
        object.__setattr__(self, name, value)

    @property
    def __spec__(self) -> Any:
        """That of a module of this name, which some are found as."""
        return type(sys.__spec__)(self._place, None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__dict__.get('_place', type(self).__name__)}.{name} does not exist")

    @contextlib.contextmanager
    def patch(self, arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Other values for a block, or for the calls of a function that it decorates: patch("name", value), patch({...}), patch(name=value)."""
        changes = {**(arg1 if isinstance(arg1, dict) else {} if arg1 is None else {arg1: arg2}), **kwargs}
        before = {}
        for name, value in changes.items():
            holder, last = self._find(name)
            before[name] = vars(holder).get(last, getattr(holder, last) if hasattr(type(holder), last) else holder)  # holder: it was not there
            setattr(holder, last, value)
        try:
            yield
        finally:
            for name, value in before.items():
                holder, last = self._find(name)
                delattr(holder, last) if value is holder else setattr(holder, last, value)

    def _find(self, name: str) -> tuple[Flags, str]:
        *groups, last = name.split(".")
        holder = self
        for group in groups:
            holder = getattr(holder, group)
        return holder, last
