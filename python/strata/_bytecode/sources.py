"""Where a value came from, as an expression of a compiled entry's arguments and of objects that it holds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Source:
    """kind "arg" (key: number), "const" (key: the object), "item" (base[key]), "attr" (base.key), or "raw dict" or "raw list": an
    item of a container whose class may override how items are read."""

    __slots__ = ("_identity", "base", "key", "kind")

    def __init__(self, kind: str, base: Source | None, key: Any):
        self.kind, self.base, self.key = kind, base, key
        mark = key if kind in ("arg", "attr") or type(key) in (str, int) else id(key)
        self._identity = kind, None if base is None else base._identity, type(key), mark

    def item(self, key: Any) -> Source:
        return Source("item", self, key)

    def attr(self, name: str) -> Source:
        return Source("attr", self, name)

    def state(self, name: str) -> Source:
        """An attribute in the object's own dict."""
        return self.attr("__dict__").item(name)

    def identity(self) -> tuple:
        """Equal where the expressions are."""
        return self._identity

    def __repr__(self) -> str:
        """As people read it."""
        if self.kind == "arg":
            return f"arg{self.key}"
        if self.kind == "const":
            return getattr(self.key, "__name__", None) or (
                f"globals of {self.key['__name__']}" if type(self.key) is dict and "__name__" in self.key else f"<{type(self.key).__name__}>"
            )
        if self.kind == "attr":
            return f"{self.base}.{self.key}"
        if self.base.kind == "attr" and self.base.key == "__dict__":
            return f"{self.base.base}.{self.key}"
        if self.base.kind == "const" and type(self.base.key) is dict:
            return f"{self.key} (global)" if "__name__" in self.base.key else f"{self.key}"
        return f"{self.base}[{self.key!r}]"


def arg(number: int) -> Source:
    return Source("arg", None, number)


def const(value: Any) -> Source:
    return Source("const", None, value)


class Text:
    """Writes expressions of sources; objects that have no text become constants K0, K1...

    `lines` holds assignments that give each source a name, in the order in which they are needed.
    """

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self._places: dict[int, str] = {}
        self.names: dict[tuple, str] = {}

    def constant(self, value: Any) -> str:
        name = self._places.get(id(value))
        if name is None:
            name = self._places[id(value)] = f"K{len(self._places)}"
            self.constants[name] = value
        return name

    def literal(self, value: Any) -> str:
        kind = type(value)
        if value is None or kind in (bool, str, bytes) or (kind is int and abs(value) < 1 << 60):
            return repr(value)
        if kind is float and value == value and abs(value) != float("inf"):
            return repr(value)
        return self.constant(value)

    def of(self, source: Source, lines: list[str]) -> str:
        """Its name, after a line that gives it one."""
        if source.kind == "arg":
            return f"a{source.key}"
        if source.kind == "const":
            return self.constant(source.key)
        identity = source.identity()
        name = self.names.get(identity)
        if name is None:
            base = self.of(source.base, lines)
            name = self.names[identity] = f"s{len(self.names)}"
            if source.kind in ("raw dict", "raw list"):
                right = f"{self.constant((dict if source.kind == 'raw dict' else list).__getitem__)}({base}, {self.literal(source.key)})"
            else:
                right = f"{base}.{source.key}" if source.kind == "attr" else f"{base}[{self.literal(source.key)}]"
            lines.append(f"{name} = {right}")
        return name
