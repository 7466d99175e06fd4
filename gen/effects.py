"""What operators do beside giving results, as far as their texts tell: `raises` by values of tensors (a checked index, a zero
divisor, a value that is looked at), `draws` random numbers, `writes:ARGUMENT` an operand that the schema does not mark, `untold`
where C++ alone says what it does. For those that drop or join operators of a graph."""

from __future__ import annotations

import ast
from functools import cache

from . import expr

STATUS = {"checked", "wrapped", "floordiv", "truncdiv", "fmod", "remainder"}  # of kernels' texts; they set the status word


@cache
def called(text: str) -> frozenset[str]:
    return frozenset(n.func.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))


@cache
def written(text: str) -> frozenset[str]:
    """Names that calls of a text write: `into=name`."""
    keywords = [k for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) for k in n.keywords if k.arg == "into"]
    return frozenset(k.value.id for k in keywords if isinstance(k.value, ast.Name))


def of_kernel(text: str, inlined: dict[str, str], seen: frozenset[str] = frozenset()) -> set[str]:
    names = {c.func.id for c in expr.calls(text)}
    divides = any(isinstance(n, (ast.FloorDiv, ast.Mod)) for _, value in expr.lines(text) for n in ast.walk(expr.parse(value)))
    found = {"raises"} if divides or names & STATUS else set()
    for name in names & inlined.keys() - seen:
        found |= of_kernel(inlined[name], inlined, seen | {name})
    return found


class Effects:
    def __init__(self, entries: list, kernels: list, formulas: dict[str, str]):
        self.entries: dict[str, list] = {}
        self.kernels: dict[str, list] = {}
        for e in entries:
            self.entries.setdefault(e.schema.name, []).append(e)
        for k in kernels:
            self.kernels.setdefault(k.name, []).append(k)
        self.formulas = formulas
        self.inlined = {e.schema.name: e.text for e in entries if e.kind == "pointwise"}
        self.known: dict[str, set[str]] = {}  # of kernels' texts

    def of(self, e) -> set[str]:
        """Of an entry, with all that its text reaches."""
        found, names, todo = self.own(e), set(), set(self.calls(e))
        while todo:
            name = todo.pop()
            if name in names:
                continue
            names.add(name)
            for k in self.kernels.get(name, []):
                found |= {"draws"} if k.draws else self.of_text(k.text)
            for other in self.entries.get(name) or self.entries.get(name.removesuffix("_"), []):  # whichever overload is meant
                found |= {act for act in self.own(other) if not act.startswith("writes:") or _has(e, act)}
                todo |= self.calls(other)
            todo |= called(self.formulas.get(name, ""))
        return found

    def of_text(self, text: str) -> set[str]:
        if text not in self.known:
            self.known[text] = of_kernel(text, self.inlined)
        return self.known[text]

    @staticmethod
    def calls(e) -> frozenset[str]:
        return called(e.text) if e.plan else frozenset()

    def own(self, e) -> set[str]:
        found = {"raises"} if e.reads & {"value", "inside"} or e.row.size else set()
        if any(a.type.startswith("Generator") for o in self.entries[e.schema.name] for a in o.schema.args):  # or an overload's
            found.add("draws")
        if e.plan:
            found |= {f"writes:{name}" for name in written(e.text) if _has(e, f"writes:{name}")}
        if e.kind in ("pointwise", "rows", "space"):
            return found | self.of_text(e.text)
        return found if e.plan or e.kind in ("view", "allocate") or e.row.body == "header" else {*found, "untold"}


def _has(e, act: str) -> bool:
    """Whether an entry has the argument that `act` writes, without a mark."""
    return any(a.name == act.removeprefix("writes:") and not a.written for a in e.schema.args)
