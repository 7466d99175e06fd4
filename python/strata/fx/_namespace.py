"""Names of values in a graph: each once, none of Python's own."""

from __future__ import annotations

import builtins
import keyword
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Namespace:
    """Gives names to objects. `taken` are names that only the object there may have."""

    taken: dict[str, Any] = {**{word: object() for word in keyword.kwlist}, **vars(builtins)}

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._last: dict[str, int] = {}  # of each name without its number, the number that was given last

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that is free, which is `obj`'s from then on (None: nobody's)."""
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = re.match(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$", candidate).groups()
        if number is None or candidate in self._used:
            count = self._last.get(base, 0)
            if self.taken.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self._used:
            count += 1
            candidate = f"{base}_{count}"
        self._used.add(candidate)
        self._last[base] = count
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Says whose a name is. AssertionError where the object has one."""
        if self._names.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._names[obj] = name
        self._used.add(name)
