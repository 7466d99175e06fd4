"""Which sizes of a program's inputs may vary: Dim, dims, and how dynamic_shapes is read."""

from __future__ import annotations

from math import inf

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Dim", "dims"]


class _Hint:
    """What is said of a size instead of a range."""

    def __init__(self, kind: str, low: int | None = None, high: int | None = None) -> None:
        self.kind, self.min, self.max = kind, low, high

    def __call__(self, *, min: int | None = None, max: int | None = None) -> _Hint:  # noqa: A002
        return _Hint(self.kind, min, max)

    def __repr__(self) -> str:
        return f"Dim.{self.kind}"


class Dim:
    """A size that may vary, in [min, max]. Where one Dim stands twice, both sizes are the same; `2 * dim + 1` derives another.

    Dim.AUTO: it varies where the program lets it. Dim.DYNAMIC: it varies, or export raises. Dim.STATIC: it is that of the example.
    ValueError for a name that is no identifier and an empty range.
    """

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002
        low, high = 0 if min is None else min, inf if max is None else max
        if not high > low:
            raise ValueError(f"Cannot create Dim with inconsistent min={low}, max={high}")
        if not name.isidentifier():
            raise ValueError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high
        self.given = min

    def __mul__(self, factor: Any) -> _Derived:
        return _Derived(self, 1, 0) * factor

    def __add__(self, more: Any) -> _Derived:
        return _Derived(self, 1, 0) + more

    def __sub__(self, less: Any) -> _Derived:
        return _Derived(self, 1, 0) - less

    __rmul__, __radd__ = __mul__, __add__

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


class _Derived:
    """factor * root + offset"""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self.factor, self.offset = root, factor, offset

    def __mul__(self, factor: Any) -> _Derived:
        if type(factor) is not int or factor <= 0:
            raise NotImplementedError(f"Attempted to multiply {self!r} by {factor!r}, where a positive integer was expected.")
        return _Derived(self.root, self.factor * factor, self.offset * factor)

    def __add__(self, more: Any) -> _Derived:
        if type(more) is not int:
            raise NotImplementedError(f"Attempted to add {more!r} to {self!r}, where an integer was expected.")
        return _Derived(self.root, self.factor, self.offset + more)

    def __sub__(self, less: Any) -> _Derived:
        return self + (-less if type(less) is int else less)

    __rmul__, __radd__ = __mul__, __add__

    def __repr__(self) -> str:
        text = self.root.__name__ if self.factor == 1 else f"{self.factor}*{self.root.__name__}"
        return text + (f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}" if self.offset else "")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:  # noqa: A002
    """Several Dims of one range."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class Symbol:
    """A size that varies. low, high: its range (None: none); kind: named, DYNAMIC or AUTO; value: of the example."""

    def __init__(self, name: str, low: int, high: int | None, kind: str, value: int, explicit: bool = False) -> None:
        self.name, self.low, self.high, self.kind, self.value, self.explicit = name, low, high, kind, value, explicit

    def __repr__(self) -> str:
        return f"VR[{self.low}, {'int_oo' if self.high is None else self.high}]"


class Entry:
    """A size of an input: factor * symbol + offset."""

    def __init__(self, symbol: Symbol, factor: int = 1, offset: int = 0) -> None:
        self.symbol, self.factor, self.offset = symbol, factor, offset

    def at(self, value: int) -> int:
        return self.factor * value + self.offset


def read(spec: Any, names: list[str], values: list, leaves_of: Any) -> list[dict[int, Entry]]:
    """Of each tensor among the arguments' leaves, in order, the sizes that vary.

    spec: a dict by argument or a sequence in their order; names, values: of the arguments. ValueError where it does not fit.
    """
    if isinstance(spec, dict):
        unknown = [k for k in spec if k not in names]
        if unknown:
            raise ValueError(f"export: dynamic_shapes names {unknown[0]!r}; the arguments are {', '.join(names)}")
        specs = [spec.get(name) for name in names]
    elif isinstance(spec, (tuple, list)):
        if len(spec) != len(values):
            raise ValueError(f"export: dynamic_shapes has {len(spec)} items for {len(values)} arguments")
        specs = list(spec)
    else:
        raise ValueError(f"export: expected dynamic_shapes as a dict or a sequence, got {type(spec).__name__}")
    symbols: dict[str, tuple[Symbol, Any]] = {}
    found: list[dict[int, Entry]] = []
    for name, value, own in zip(names, values, specs, strict=True):
        _walk(value, own, name, symbols, found, leaves_of)
    return found


def _walk(value: Any, spec: Any, path: str, symbols: dict, found: list, leaves_of: Any) -> None:
    if isinstance(value, strata.Tensor):
        found.append(_entries(value, spec, path, symbols))
        return
    children = leaves_of(value)
    if children is None:
        if spec is not None:
            raise ValueError(f"export: dynamic_shapes of {path}, which is no tensor: expected None, got {spec!r:.60}")
        return
    for key, child in children:
        inner = None
        if isinstance(spec, dict):
            inner = spec.get(key)
        elif isinstance(spec, (tuple, list)):
            if type(key) is not int or len(spec) != len(children):
                raise ValueError(f"export: dynamic_shapes of {path} has {len(spec)} items for {len(children)}")
            inner = spec[key]
        elif spec is not None:
            raise ValueError(f"export: dynamic_shapes of {path}: expected a nest like it, got {spec!r:.60}")
        _walk(child, inner, f"{path}[{key!r}]", symbols, found, leaves_of)


def _entries(t: Any, spec: Any, path: str, symbols: dict) -> dict[int, Entry]:
    if spec is None:
        return {}
    if isinstance(spec, (tuple, list)):
        if len(spec) != t.dim():
            raise ValueError(f"export: dynamic_shapes of {path} has {len(spec)} items for {t.dim()} dims")
        spec = dict(enumerate(spec))
    if not isinstance(spec, dict):
        raise ValueError(f"export: dynamic_shapes of {path}: expected a dict by dim, or a sequence, got {spec!r:.60}")
    made = {}
    for dim, said in spec.items():
        if type(dim) is not int or not 0 <= dim < t.dim():
            raise ValueError(f"export: dynamic_shapes of {path}: expected dims in [0, {t.dim()}), got {dim!r}")
        entry = _entry(said, t.shape[dim], f"{path}.size({dim})", symbols)
        if entry is not None:
            made[dim] = entry
    return made


def _entry(said: Any, size: int, path: str, symbols: dict) -> Entry | None:
    if said is None or (type(said) is int and said == size) or (isinstance(said, _Hint) and said.kind == "STATIC"):
        return None
    if isinstance(said, _Hint):
        if size < 2:
            if said.kind == "AUTO":
                return None
            raise ValueError(f"export: {path} is marked as DYNAMIC, and is {size} in the example; give an example of 2 or more: 0 and 1 are specialised")
        name = f"s{len(symbols)}"
        symbol = Symbol(name, max(2, said.min or 0), said.max, said.kind, size, said.min is not None)
        symbols[name] = symbol, said
        return Entry(symbol)
    if not isinstance(said, (Dim, _Derived)):
        raise ValueError(f"export: {path}: expected a Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC or None, got {said!r:.60}")
    derived = said if isinstance(said, _Derived) else _Derived(said, 1, 0)
    root = derived.root
    value, rest = divmod(size - derived.offset, derived.factor)
    if rest:
        raise ValueError(f"Constraints violated ({root.__name__})! {path} is {size} in the example, which is no {derived!r}")
    known = symbols.get(root.__name__)
    if known is None:
        high = None if root.max == inf else int(root.max)
        known = symbols[root.__name__] = Symbol(root.__name__, root.min if root.given is not None else 2, high, "named", value, root.given is not None), root
    symbol, first = known
    if (first.min, first.max) != (root.min, root.max):
        raise ValueError(f"export: found different definitions {first!r} and {root!r} for the same symbolic dimension")
    if symbol.value != value:
        raise ValueError(f"Constraints violated ({root.__name__})! {path} is {size} in the example, where {root.__name__} is {symbol.value} elsewhere")
    if value < symbol.low or (symbol.high is not None and value > symbol.high):
        raise ValueError(f"Constraints violated ({root.__name__})! {path} is {size} in the example, outside of {root.__name__} in {symbol!r}")
    return Entry(symbol, derived.factor, derived.offset)
