"""Names that mean something else for a while, as tracers need it: several threads may want that at once."""

from __future__ import annotations

from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ABSENT = object()
_lock = RLock()
_installed: dict[tuple[int, str], list] = {}  # by owner and name: how many want it, the owner, what was there


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        if value is _ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


class Patches:
    """A context: what was put in it is there until it ends, and as long as others put the same."""

    def __init__(self) -> None:
        self._mine: list[tuple[int, str]] = []

    def __enter__(self) -> Patches:
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:
            while self._mine:
                key = self._mine.pop()
                entry = _installed[key]
                entry[0] -= 1
                if not entry[0]:
                    del _installed[key]
                    _set(entry[1], key[1], entry[2])

    def put(self, owner: Any, name: str, make: Callable[[], Any]) -> None:
        """Puts make() under a name into a class or a dict of globals. Who else puts something there gets the first one's."""
        key = id(owner), name
        with _lock:
            entry = _installed.get(key)
            if entry is None:
                value = make()
                entry = _installed[key] = [0, owner, (owner if isinstance(owner, dict) else vars(owner)).get(name, _ABSENT)]
                _set(owner, name, value)
            entry[0] += 1
            self._mine.append(key)


def is_put(owner: Any, name: str) -> bool:
    """Whether something is there for a while."""
    return (id(owner), name) in _installed
