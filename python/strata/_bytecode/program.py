"""What a capture did with symbolic sizes and with operators, as a straight line of steps that can be done again for other sizes.

A step reads and sets slots of an environment: numbers, tensors. `Replay` (instances.py) runs them. What the capture learned from a
step and relied on (a comparison's answer, a dtype, how many tensors there are, which of them is an earlier one) is checked again.
"""

from __future__ import annotations

import operator

import strata

from . import values
from .forms import (
    CONDITION,
    DO,
    FRESH,
    INPUT,
    LIFT,
    OPERATOR,
    Condition,
    Method,
    Nest,
    Ref,
    Symbol,
    facts,
    geometry_in,
    modes,
    size_at,
    slots_in,
)
from .reasons import Asked, Fixed, SizeViolation, logs, tell
from .sizes import Sizes, Sym, concrete, has_sym, remade, syms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .data import Late
    from .seen import Mark
    from .sources import Source

_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.truediv: "/", operator.mod: "%",
    operator.pow: "**", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==",
    operator.ne: "!=", operator.and_: "&", operator.or_: "|", operator.lshift: "<<", operator.rshift: ">>",
}  # fmt: skip
_ALIKE = frozenset({size_at, operator.add, operator.sub, operator.mul, operator.neg, operator.truediv, operator.floordiv, operator.mod})
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Program:
    """Of one capture. where() gives the line that is executed."""

    def __init__(self, where: Callable[[], str]):
        self.where = where
        self.steps: list[tuple] = []
        self.count = 0  # of slots
        self.symbols: list[Symbol] = []
        self.places: list[tuple[tuple, int, int]] = []  # of each symbol: its source, its dim or -1, its slot
        self.slots: dict[int, int] = {}  # of tensors, by id
        self.keep: list[Any] = []
        self.dims: dict[tuple[int, int], Sym] = {}  # of tensors from outside
        self.numbers: dict[tuple, Sym] = {}  # of sources
        self.tainted: set[int] = set()  # slots whose value, or sizes, symbols may change
        self.pure: set[int] = set()  # slots that symbols alone decide
        self.fixed: set[int] = set()  # slots whose value is a condition
        self.conditions: list[Condition] = []
        self.violations: list[str] = []
        self.direct: dict[int, Symbol] = {}
        self.wanted: dict[int, str] = {}  # slots whose values the text names
        self.now: dict[str, Any] = {}  # what these are in the capture
        self.names: dict[int, str] = {}
        self.late: dict[int, Late] = {}  # numbers that are read when the graphs have run
        self.data: dict[int, frozenset[int]] = {}  # slots that values of tensors decide: by which reads (data.py)
        self.ends: list[int] = []  # of each part that was cut off: how many slots there were
        self.named: list[list[int]] = []  # of each part: numbers that the text names
        self.found: dict[int, str] = {}  # slots of tensors that are given between parts: what the text calls them

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    # ---- symbols

    def symbol(self, text: str, value: float, source: Source, dim: int, mark: Mark | None) -> Sym:
        made = Symbol(f"s{len(self.symbols)}", text, value, 2 if dim >= 0 else None, mark)
        if mark is not None:
            if mark.low is not None:
                made.low = max(made.low or mark.low, mark.low)
            made.high = mark.high
        slot = self.slot()
        self.symbols.append(made)
        self.places.append((source.identity(), dim, slot))
        self.pure.add(slot)
        self.tainted.add(slot)
        self.direct[slot] = made
        if mark is not None and not ((mark.low is None or value >= mark.low) and (mark.high is None or value <= mark.high)):
            self.violations.append(f"{made.text} is marked to be in [{mark.low or 2}, {mark.high or 'inf'}], and is {value}\n  {self.where()}")
        sym = Sym(self, slot, value, made.name)
        if mark is not None and not self.violations:
            for low, bound, function in ((True, mark.low, operator.ge), (False, mark.high, operator.le)):
                if bound is not None and (bound > 2 or not low):
                    self.decide(function, (sym, bound), True, "as it is marked")
        if logs("sizes"):
            tell("sizes", f"{made!r}: {value}")
        return sym

    def open_number(self, value: float, source: Source) -> Sym:
        at = source.identity()
        if at not in self.numbers:
            self.numbers[at] = self.symbol(repr(source), value, source, -1, None)
        return self.numbers[at]

    def input(self, t: Any, source: Source, name: str, dims: list[int], marks: dict) -> None:
        slot = self.hold(t, name)
        self.steps.append((INPUT, slot, source, name))
        if dims:
            self.tainted.add(slot)
        for dim in dims:
            mark = marks.get(dim)
            self.dims[slot, dim] = self.symbol(f"{name}.size({dim})", t.shape[dim], source, dim, mark)
        for dim in range(t.dim()):
            self.dims.setdefault((slot, dim), t.shape[dim])

    def hold(self, t: Any, name: str) -> int:
        slot = self.slots[id(t)] = self.slot()
        self.keep.append(t)
        self.names[slot] = name
        return slot

    # ---- numbers

    def lift(self, function: Callable, args: tuple) -> Any:
        """A pure function of numbers, some of which are Syms."""
        if self.late and any(v.slot in self.late for v in args if type(v) is Sym):
            from .data import lifted

            return lifted(self, function, args)
        if all(v.slot in self.fixed for v in args if type(v) is Sym):
            return function(*concrete(args))
        try:
            found = function(*concrete(args))
        except Exception:
            for v in syms(args):
                v.settle()
            raise
        if type(found) is bool:
            return self.decide(function, args, found)
        if type(found) is tuple and all(type(v) in (int, float) for v in found):
            slot = self.step(function, args, tuple)
            return tuple(self.number(operator.getitem, (Ref(slot), i), v, f"{self.text(function, args)}[{i}]") for i, v in enumerate(found))
        if type(found) not in (int, float):
            return function(*[v.settle() if type(v) is Sym else v for v in args])
        return self.number(function, args, found, self.text(function, args))

    def number(self, function: Callable, args: tuple, value: Any, text: str) -> Sym:
        slot = self.step(function, args, None if function in _ALIKE else type(value))
        return Sym(self, slot, value, text if len(text) < 120 else f"e{slot}")

    def step(self, function: Callable, args: tuple, kind: type | None = None) -> int:
        """kind: the type of what it gives, where that may be another one for other numbers."""
        forms = tuple(self.form(v) for v in args)
        slot = self.slot()
        self.steps.append((LIFT, slot, function, forms, kind))
        used = [f.slot for f in forms if type(f) is Ref]
        self.decided_by(used, slot)
        if all(s in self.pure for s in used):
            self.pure.add(slot)
        self.tainted.add(slot)
        return slot

    def decided_by(self, used: Any, first: int) -> None:
        """Slots from `first` on hang on values of tensors where those that were used do."""
        reads = [self.data[slot] for slot in used if slot in self.data] if self.data else ()
        if reads:
            self.data.update(dict.fromkeys(range(first, self.count), frozenset().union(*reads)))

    def part_of(self, slot: int) -> int:
        """The part in which a slot gets its value."""
        return sum(slot >= end for end in self.ends)

    def tensor_at(self, slot: int) -> Any:
        return next(t for t in self.keep if self.slots[id(t)] == slot)

    def places_of(self, form: tuple, text: str) -> None:
        """Notes what the text calls the tensors of a result."""
        if form[0] == "tensor":
            self.found[form[1]] = text
        elif form[0] == "items":
            for i, part in enumerate(form[2]):
                self.places_of(part, f"{text}[{i}]")

    def text(self, function: Callable, args: tuple) -> str:
        shown = [v.text if type(v) is Sym else "..." if type(v) is Ref else repr(v) for v in args]
        sign = _SIGNS.get(function)
        if sign and len(shown) == 2:
            shown = [f"({s})" if " " in s and not s.endswith(")") else s for s in shown]
            return f"{shown[0]} {sign} {shown[1]}"
        return f"{getattr(function, '__name__', 'f')}({', '.join(shown)})"

    def decide(self, function: Callable, args: tuple, found: bool, place: str = "") -> bool:
        """An answer, which is a condition from now on."""
        slot = self.step(function, args)
        sign = _SIGNS.get(function, "")
        text = self.text(function, args)
        if not found:
            text = text.replace(f" {sign} ", f" {_NEGATED[sign]} ") if sign in _NEGATED and text.count(f" {sign} ") == 1 else f"not ({text})"
        condition = self.condition(slot, found, text, place)
        if len(args) == 2 and sign in _NEGATED:
            self.narrow(args, sign if found else _NEGATED[sign], condition, place)
        return found

    def condition(self, slot: int, expected: Any, text: str, place: str = "") -> Condition:
        made = Condition(slot, expected, text, place or self.where(), slot in self.pure)
        self.conditions.append(made)
        self.steps.append((CONDITION, made))
        if logs("sizes"):
            tell("sizes", repr(made))
        return made

    def note_checks(self, place: str) -> None:
        """What that line has asked is given to one of strata's checks."""
        for condition in self.conditions:
            condition.check |= condition.place == place

    def narrow(self, args: tuple, sign: str, condition: Condition, place: str) -> None:
        """The range of a symbol that is compared with a number."""
        a, b = args
        if type(b) is Sym and type(a) is int:
            a, b, sign = b, a, _MIRRORED[sign]
        symbol = self.direct.get(a.slot) if type(a) is Sym else None
        if symbol is None or type(b) is not int or type(symbol.value) is not int:
            return
        low, high = symbol.low, symbol.high
        if sign in ("<", "<="):
            bound = b - (sign == "<")
            symbol.high = bound if high is None else min(high, bound)
        elif sign in (">", ">="):
            bound = b + (sign == ">")
            symbol.low = bound if low is None else max(low, bound)
        elif sign == "==":
            symbol.low = symbol.high = b
        mark = symbol.mark
        if mark is None or mark.kind != "dynamic" or place or (symbol.low, symbol.high) == (low, high):
            return
        if sign == "==":
            self.violations.append(f"{symbol.text} is marked as dynamic, and was specialised to {b}: {condition.text}\n  {condition.place}")
        elif mark.low is not None or mark.high is not None:
            self.violations.append(
                f"{symbol.text} is marked to be in [{mark.low or 2}, {mark.high or 'inf'}], and what was captured holds for "
                f"[{symbol.low}, {symbol.high or 'inf'}] alone (now it is {symbol.value}): {condition.text}\n  {condition.place}"
            )

    def settle(self, sym: Sym) -> Any:
        if sym.slot not in self.fixed:
            reads = self.late[sym.slot].reads if sym.slot in self.late else self.data.get(sym.slot)
            if reads:
                raise Asked(reads, f"what it gives must be known, here: {self.where()}")
            self.fixed.add(sym.slot)
            condition = self.condition(sym.slot, sym.value, f"{sym.text} == {sym.value!r}")
            if type(sym.value) is int:
                self.narrow((sym, sym.value), "==", condition, "")
        return sym.value

    def check(self) -> None:
        """At the end: what was marked is as it was marked."""
        if self.violations:
            raise SizeViolation("compile: " + "\n".join(self.violations))

    def size(self, t: Any, dim: int) -> Any:
        slot = self.slots.get(id(t))
        n = t.shape[dim]
        if slot is None or slot not in self.tainted:
            return n
        if (slot, dim) in self.dims:
            return self.dims[slot, dim]
        return self.number(size_at, (Ref(slot), dim), n, f"{self.names[slot]}.size({dim})")

    def shape(self, t: Any) -> Any:
        found = [self.size(t, i) for i in range(t.dim())]
        return Sizes(found) if has_sym(found) else t.shape

    # ---- operators

    def form(self, value: Any) -> Any:
        """A value of the capture as steps keep it."""
        kind = type(value)
        if kind is Ref:
            return value
        if kind is Sym:
            if value.slot in self.late:
                raise Asked(self.late[value.slot].reads)
            return Ref(value.slot)
        if values.is_tensor(value):
            slot = self.slots.get(id(value))
            if slot is not None:
                return Ref(slot)
            if not self.outside(value):
                raise Fixed("a tensor that no operator of the program gave")
            return value
        if kind is list:
            return Nest(list, [self.form(v) for v in value])
        if kind is slice:
            parts = value.start, value.stop, value.step
            return Nest(slice, [self.form(v) for v in parts]) if has_sym(value) else value
        if isinstance(value, tuple):
            items = [self.form(v) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            return Nest(tuple if kind is tuple else value, items)
        if isinstance(value, dict):
            return Nest(dict, [self.form(v) for v in value.values()], list(value))
        if isinstance(value, (set, frozenset)) and any(map(values.is_tensor, value)):
            raise Fixed("a set of tensors is an argument of an operator")
        return value

    outside: Callable[[Any], bool] = staticmethod(lambda t: False)

    def operator(self, function: Any, args: tuple, kwargs: dict, found: Any, frames: tuple, name: str) -> Any:
        """What an operator gave, as the program sees it."""
        owner = getattr(function, "__self__", None)
        what = Method(self.form(owner), function.__name__) if values.is_tensor(owner) else function
        if owner is not None and what is function and isinstance(owner, (list, tuple, dict)):
            raise Fixed(f"{name}, a method of a container")
        forms, keywords = self.form(args), self.form(kwargs)
        tainted = self.reads_tainted(what) or self.reads_tainted(forms) or self.reads_tainted(keywords)
        first, used = self.count, set()
        result, seen = self.result(found, tainted, name)
        if self.data:
            for form in (what, forms, keywords):
                slots_in(form, used)
            self.decided_by(used, first)
        self.steps.append((OPERATOR, what, forms, keywords, frames, result, modes(), name))
        return seen

    def read_by_others(self) -> set[int]:
        """Slots that symbols alone decide, and that steps read which need more than symbols."""
        found: set[int] = set()
        for step in self.steps:
            if step[0] == LIFT and step[1] not in self.pure:
                slots_in(step[3], found)
            elif step[0] in (OPERATOR, FRESH, DO):
                for form in step[1:5]:
                    slots_in(form, found)
        return found & self.pure

    def reads_tainted(self, form: Any) -> bool:
        kind = type(form)
        if kind is Ref:
            return form.slot in self.tainted
        if kind is Method:
            return self.reads_tainted(form.owner)
        if kind is tuple:
            return any(map(self.reads_tainted, form))
        return kind is Nest and any(map(self.reads_tainted, form.items))

    def result(self, found: Any, tainted: bool, name: str) -> tuple[tuple, Any]:
        """(what a run expects, what the program sees)"""
        kind = type(found)
        if values.is_tensor(found):
            known = self.slots.get(id(found))
            if known is not None:
                if tainted:
                    self.tainted.add(known)
                return ("same", known), found
            slot = self.hold(found, name)
            if tainted:
                self.tainted.add(slot)
            return ("tensor", slot, facts(found)), found
        if kind in (int, float) and tainted:
            slot = self.slot()
            self.tainted.add(slot)
            return ("number", slot, kind), Sym(self, slot, found, name)
        if isinstance(found, (list, tuple)) and kind is not strata.Size or (kind is strata.Size and tainted):
            parts = [self.result(v, tainted, f"{name}[{i}]") for i, v in enumerate(found)]
            seen = [s for _, s in parts]
            if any(a is not b for a, b in zip(seen, found, strict=True)):
                found = Sizes(seen) if kind is strata.Size else remade(found, seen)
            return ("items", kind, [f for f, _ in parts]), found
        if isinstance(found, dict):
            parts = [self.result(v, tainted, f"{name}[{k!r}]") for k, v in found.items()]
            return ("dict", list(found), [f for f, _ in parts]), {k: s for k, (_, s) in zip(found, parts, strict=True)}
        if values.is_constant(found):
            return ("equal", found), found
        if tainted:
            raise Fixed(f"{name} gives a {kind.__name__}")
        return ("any",), found

    def derive(self, t: Any, function: Callable, args: tuple, name: str) -> None:
        """A tensor that is found from another, as its gradient or its base."""
        if id(t) in self.slots:
            return
        forms = tuple(self.form(v) for v in args)
        slot = self.hold(t, name)
        if any(map(self.reads_tainted, forms)):
            self.tainted.add(slot)
        self.steps.append((OPERATOR, function, forms, {}, (), ("tensor", slot, facts(t)), modes(), name))

    def fresh(self, t: Any, function: Callable, args: tuple, kwargs: dict, name: str) -> None:
        """A tensor of Python data."""
        forms, keywords = self.form(args), self.form(kwargs)
        self.steps.append((FRESH, self.hold(t, name), function, forms, keywords, facts(t), tuple(t.shape)))

    def do(self, function: Callable, *args: Any) -> None:
        self.steps.append((DO, function, self.form(args)))

    def name(self, sym: Sym) -> str:
        """What the text calls it."""
        name = self.wanted.setdefault(sym.slot, f"N{sym.slot}")
        self.now[name] = sym.value
        return name

    def geometry(self, t: Any, of: Any) -> str:
        """What the text calls the place of a view in a tensor."""
        slot = self.step(geometry_in, (Ref(self.slot_of(t)), Ref(self.slot_of(of))))
        name = self.wanted[slot] = f"N{slot}"
        self.now[name] = geometry_in(t, of)
        return name

    def slot_of(self, t: Any) -> int:
        if id(t) not in self.slots:
            raise Fixed("a result that no operator of the program gave")
        return self.slots[id(t)]
