"""Statements that few functions have: patterns, classes inside, deletions, arguments that do not fit."""

import contextlib
import dataclasses

import pytest
import strata
from both import same


def t():
    return strata.arange(3.0)


@dataclasses.dataclass
class Point:
    a: int
    b: object = None


# As text: what checks this file reads older Pythons.
PATTERNS = """
def f(x, v):
    if prints:
        print(x)
    match v:
        case int(n) if n > 3: return x + n
        case Point(1, b): return x + 100, b
        case Point(a=2, b=[y, *z]): return x + y + len(z)
        case {"k": 1, "q": w, **rest}: return x * w, rest
        case [a, b]: return x + a * b
        case str(): return x - 1
        case list(): return x - 2
    return x - 3

def g(x, v):
    match v:
        case int(1, 2): return x
        case Point(1, 2, 3): return x
        case Odd(1, 1): return x
    return x
"""


@pytest.mark.parametrize("prints", [False, True])
def test_patterns(prints):
    exec(PATTERNS, space := {"Point": Point, "prints": prints})

    def scenario(n):
        f = n.compile(space["f"])
        for v in (5, 1, Point(1), Point(2, [3, 4]), {"k": 1, "q": 5, "z": 1}, {"k": 2}, [2, 3], "s"):
            n.call(f, t(), v)

    assert set(same(scenario)) <= {"print of a tensor"}


def test_patterns_that_do_not_fit():
    class Odd:
        __match_args__ = ("a", "a")
        a = 1

    exec(PATTERNS, space := {"Point": Point, "Odd": Odd})

    def scenario(n):
        g = n.compile(space["g"])
        for v in (1, Point(1), Odd()):
            n.call(g, t(), v)

    same(scenario)


def test_a_class_inside():
    def f(x, n):
        class A:
            k = n

            def go(self, v):
                return v * self.k + A.k

        class B(A):
            k = n + 1

        return B().go(x), B.__name__

    def scenario(n):
        g = n.compile(f)
        for k in (2, 2, 3):
            n.call(g, t(), k)

    assert "__build_class__" in same(scenario)[0]


DELETIONS = """
def f(x, n):
    global GONE
    GONE = n
    del GONE
    try:
        if n:
            raise ValueError("a")
    except ValueError as error:
        text = (lambda: str(error))()
        x = x + len(text)
    k = 3
    read = lambda: k
    x = x + read()
    del k
    try:
        read()
    except NameError as error:
        print(error)
    return x
"""


def test_deletions():
    exec(DELETIONS, space := {})

    def scenario(n):
        g = n.compile(space["f"])
        for k in (0, 1, 1):
            n.call(g, t(), k)
        n.say("GONE" in space)

    assert "the global GONE is deleted" in same(scenario)


def test_exception_groups_run_as_they_are():
    text = "def inner(x):\n try: raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n except* ValueError: x = x + 1\n except* TypeError: x = x + 10\n return x"
    exec(text, space := {})
    inner = space["inner"]

    def f(x):
        return inner(x) * 2

    def scenario(n):
        n.call(n.compile(inner), t())
        n.call(n.compile(f), t())

    assert set(same(scenario)) == {"the opcode CHECK_EG_MATCH cannot be captured"}


def test_arguments_that_do_not_fit_in_pythons_words():
    def f(a, b=1, *, k, j=2):
        return a

    def h(a, b):
        return a

    def inner(x):
        return h(x)

    def scenario(n):
        g, c = n.compile(f), n.compile(inner)
        n.call(g), n.call(g, 1, 2, 3, k=1), n.call(g, 1), n.call(g, 1, k=2, z=3), n.call(g, 1, a=2, k=1), n.call(g, t(), k=1)
        n.call(c, t())

    same(scenario)


@contextlib.contextmanager
def turned():
    try:
        yield 1
    except KeyError as error:
        raise ValueError("turned") from error


def test_errors_pass_a_context_manager_of_a_generator():
    def f(x):
        found = []
        for kind in (KeyError, RuntimeError):
            try:
                with turned():
                    raise kind("k")
            except (ValueError, RuntimeError) as error:
                error.tag = len(found)
                found.append((str(error), repr(error.__cause__), error.__suppress_context__, error.tag))
        return x + 1, found

    assert not same(lambda n: n.call(n.compile(f), t()))
