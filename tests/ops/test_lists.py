"""Lists as arguments, for every operator of the table that takes one: wrong elements at each place, none, many, lists that
change while they are read, lists that hold themselves. An error names the element's true type; nothing is read that is
not there. All repeats of an operator run in one process, since a stray read shows up late."""

from __future__ import annotations

import re

from attacks import base, with_value
from child import in_child, report
from table import ENTRIES, operator, pytest, sampled, strata

REPEATS = 12
LISTS = {"int[]": 1, "int[]?": 1, "float[]": 0.5, "Tensor[]": None, "Tensor?[]": None, "bool[]": True}
CASES = [e for e in ENTRIES if any(a.key in LISTS for a in e.schema.args)]


class Changing:
    """An int, and code that empties the list it stands in while it is read."""

    def __init__(self, home: list):
        self.home = home

    def __index__(self) -> int:
        self.home.clear()
        self.rubbish = [bytes(16) for _ in range(64)]
        return 1

    def __float__(self) -> float:
        return float(self.__index__())

    @property
    def __class__(self):
        self.__index__()
        return int


class Foreign:
    pass


def changing(at: int, length: int) -> list:
    home: list = [strata.ones(1, dtype=strata.int64) for _ in range(length)]
    home[at] = Changing(home)
    return home


def itself(length: int) -> list:
    home: list = [1] * length
    home += [home, home]
    return home


def lists(element):
    for length in (1, 2, 3, 5):
        for at in range(length):
            items = [strata.ones(2) if element is None else element] * length
            yield f"[...] of {length}, a foreign object at {at}", [*items[:at], Foreign(), *items[at + 1:]], at
            yield f"[...] of {length}, a list at {at}", [*items[:at], [2], *items[at + 1:]], at
            yield f"[...] of {length}, one that changes at {at}", changing(at, length), None
    yield "[]", [], None
    yield "a list that holds itself", itself(0), 0
    yield "ints and a list that holds itself", itself(3), None
    yield "a deep list", [[[[[1]]]]], 0


def packs(element):
    """The items one by one, where they may come so: x.view(1, [2])."""
    for wrong in (Foreign(), [2], [], "x", 0.5, None):
        yield [element, wrong]
        yield [element, element, wrong]
        yield [element, wrong, element]


def callables(entry):
    """The operator, its function and its method: (name, callable, whether the first argument is the tensor)."""
    name = entry.schema.name
    yield "operator", operator(entry.schema)
    if callable(function := getattr(strata, name, None)):
        yield "function", function
    if callable(method := getattr(strata.Tensor, name, None)):
        yield "method", method


def judged(entry) -> list[str]:
    bad = []

    def attempt(what, call, args, kwargs, wrong=None):
        report({"at": what})
        for _ in range(REPEATS):
            try:
                call(*args, **kwargs)
            except (RuntimeError, ValueError, TypeError, IndexError, OverflowError) as error:
                named = re.search(r"found element of type (\w+) at pos (\d+)", str(error))
                if named and wrong is not None and named[1] != type(wrong).__name__:
                    bad.append(f"{what}: the text speaks of {named[1]}: {error}")
                    return

    for i, a in enumerate(entry.schema.args):
        if a.key not in LISTS:
            continue
        for form, call in callables(entry):
            for what, value, at in lists(LISTS[a.key]):
                args, kwargs = with_value(entry.schema, *base(entry), i, value)
                attempt(f"{form}, {a.name}: {what}", call, args, kwargs, None if at is None else value[at])
            if a.key == "int[]" and i <= 1 and form != "operator":
                for items in packs(1):
                    args, kwargs = base(entry)
                    wrong = next(x for x in items if type(x) is not int)
                    attempt(f"{form}, {a.name}: {items} one by one", call, [*args[:i], *items], kwargs, wrong)
    return bad


@pytest.mark.parametrize("entry", sampled(CASES, 60), ids=lambda e: e.schema.full)
def test_lists(entry):
    in_child(lambda: judged(entry), entry.schema.full)


def test_lists_of_the_shape_family():
    """The operators whose ints may come one by one, always all of them, in one process."""
    names = {"view", "reshape", "permute", "flip", "zeros", "ones", "empty", "repeat", "expand", "tile", "squeeze", "randn",
             "new_zeros", "hsplit", "sum", "roll", "rot90"}
    in_child(lambda: [text for e in CASES if e.schema.name in names for text in judged(e)], "shapes")
