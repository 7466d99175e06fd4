"""The classes of what operators give under several names: type(strata.max(x, 0)) is strata.return_types.max.

Each is made when it is first asked for, by a call or here, as pickle does in another process.
"""

from __future__ import annotations

from strata import _C, _lazy, ops


def _fields() -> dict[str, tuple[str, ...]]:
    """The names of results by the operator's name; of several overloads those of the one that has them."""
    found = {"histogram": ("hist", "bin_edges"), "histogramdd": ("hist", "bin_edges")}  # functions in Python
    for name in ops.names():
        if not name.startswith("aten::"):
            continue
        plain = name.removeprefix("aten::").partition(".")[0]
        results = [r.name for r in ops.get(name)._schema.returns]
        if len(results) > 1 and all(results) and hasattr(_C._functions, plain):
            found[plain] = tuple(results)
            found[plain + "_out"] = tuple(results)
    return found


def _made(name: str) -> type:
    if name.startswith("_"):
        raise KeyError(name)
    return _C._return_type(f"{__name__}.{name}", _fields()[name])


def _all(name: str) -> list[type] | type:
    return [_made(n) for n in _fields() if not n.startswith("_")] if name == "all_return_types" else _made(name)


__getattr__ = _lazy.of(globals(), otherwise=_all)[0]


def __dir__() -> list[str]:
    return sorted({"all_return_types", *(n for n in _fields() if not n.startswith("_"))})
