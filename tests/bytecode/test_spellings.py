"""What versions of Python spell in opcodes of their own: comprehensions, super, slices, calls, formats, generators, branches."""

import collections
import functools
import itertools

import strata
from both import same


def t():
    return strata.arange(6.0)


def whole(scenario):
    """Nothing breaks, and both runs say the same."""
    assert not same(scenario)


def test_a_comprehension_has_its_own_variables():
    def f(x, seen):
        i = 10
        a = [i * x for i in range(3)]
        b = {i: [i + j for j in range(i)] for i in range(3)}
        makers = [lambda y: y * i for i in range(3)]  # noqa: B023
        return a, b, i, [m(x) for m in makers], {i % 2 for i in seen}

    def unbound(x, late):
        found = [late for late in (x, x + 1)]
        if x.shape[0] == 6:
            del late
        return found, late

    def scenario(n):
        g, u = n.compile(f), n.compile(unbound)
        n.call(g, t(), [1, 2, 3])
        n.call(g, t(), [2, 4])
        n.call(u, t(), 1)
        n.call(u, strata.ones(2), 2)

    assert not [r for r in same(scenario) if "UnboundLocalError" not in r]


def test_a_break_inside_of_a_comprehension():
    def f(x, items):
        i = "before"
        y = x + 1
        made = [(print("tensor", y), i * y)[1] for i in items]
        return made, i

    def inside(x, items):
        try:
            return [(print(x), x / i, i[0])[1] for i in items]
        except TypeError as error:
            return str(error)

    def scenario(n):
        g, h = n.compile(f), n.compile(inside)
        for items in ([1, 2, 3], [], [4]):
            n.call(g, t(), items)
            n.call(h, t(), items)

    # In the function's own frame a loop goes on with an iterator that the capture did not make.
    assert "print of a tensor" in same(scenario)


def test_an_exception_leaves_a_comprehension():
    def f(x, items):
        i = "before"
        try:
            made = [x / {1: 2}[i] for i in items]
        except KeyError as error:
            made = repr(error)
        return made, i

    def through(x, items):
        return [x * [1, 2][i] for i in items]

    def scenario(n):
        g, h = n.compile(f), n.compile(through)
        for items in ([1, 1], [1, 5], []):
            n.call(g, t(), items)
            n.call(h, t(), items)

    assert len(set(same(scenario))) <= 1  # an exception that leaves the function runs as it is


class Base:
    scale = 2.0

    def __init__(self, shift):
        self.shift = shift

    def go(self, x, *more, by=1.0):
        return x * self.scale + self.shift * by, more

    @property
    def named(self):
        return "base"


class Derived(Base):
    scale = 3.0

    def __init__(self, shift):
        super().__init__(shift + 1)

    def go(self, x, *more, by=1.0):
        a, b = super().go(x, *more, by=by), super(Derived, self).go(x)  # noqa: UP008
        kept = super
        return a, b, super().named, kept(Derived, self).scale, [super(Derived, self).scale for _ in range(2)]  # noqa: UP008


def test_super():
    def f(x, by):
        d = Derived(2.0)
        return d.go(x, 1, 2, by=by), d.go(x, by=0.5)

    def shadowed(x, super):
        return super(Derived, 1).shape, super(x, 2)

    def scenario(n):
        g, h = n.compile(f), n.compile(shadowed)
        n.call(g, t(), 2.0)
        n.call(h, t(), lambda a, b: strata.ones(b))

    whole(scenario)


def test_slices():
    def f(x, items, a, b):
        y = x[a:b] * 2
        z = x.clone()
        z[a:b] = y
        z[::2] += 1
        items[a:b] = [7, 8, 9]
        kept = items[1:], items[:-1], items[:], "some text"[a:b], (1, 2, 3)[a:]
        del items[:1]
        return y, z, kept

    def scenario(n):
        g = n.compile(f)
        for a, b in ((1, 4), (0, 2), (None, 3), (-3, None)):
            items = [1, 2, 3, 4]
            n.call(g, t(), items, a, b)
            n.say(items)

    whole(scenario)


def test_calls_and_functions_with_all_that_they_can_have():
    def f(x, k):
        def inner(a, /, b=2, *args, c, d=k, **kwargs) -> int:
            return a * b + c * d, args, kwargs, x

        def typed(a: int, b: list = 3) -> float:
            return a + b

        every = inner(x, c=1), inner(x, 3, 4, c=k, e=5), inner(*(x, 1), **{"c": 2, "z": 3}), inner(x, *[1, 2], c=3, d=4)
        return every, typed(x, b=k), sorted(typed.__annotations__), inner.__kwdefaults__, inner.__defaults__

    def scenario(n):
        g = n.compile(f)
        n.call(g, t(), 2)
        n.call(g, t(), 3)

    whole(scenario)


def test_formats():
    def f(x, name, v):
        return f"{name}", f"{name!r:>8}|{v:.3f}|{v!s}|{v!a:<{len(name)}}", f"{x.shape[0]}{x.dtype}", f"{name:{v:.0f}}"

    def scenario(n):
        g = n.compile(f)
        n.call(g, t(), "name", 12.25)
        n.call(g, t(), "é", 7.0)

    whole(scenario)


def test_generators():
    def inner(x, count):
        got = []
        for i in range(count):
            got.append((yield x * i))
        return got

    def outer(x, count):
        found = yield from inner(x, count)
        yield len(found), found
        yield from ()
        yield from [x, 1]

    def stops(x):
        yield x
        next(iter([]))

    def f(x, count):
        total = list(outer(x, count))
        return total, sum(v for v in range(count)), [a + b for a, b in zip(inner(x, 2), inner(x, 3))]

    def ends(x):
        return list(stops(x))

    def scenario(n):
        g, h = n.compile(f), n.compile(ends)
        n.call(g, t(), 2)
        n.call(g, t(), 3)
        n.call(h, t())
        n.call(g, t(), 0)

    assert not [r for r in same(scenario) if "RuntimeError" not in r]


def test_branches():
    def f(x, a, b, many):
        y = x if a is None else x + 1
        if b is not None and not many:
            y = y * 2
        while a is not None and len(many) > 2:
            many = many[1:]
            if many[0] == 3:
                continue
            y = y - 1
        z = a or b or "neither"
        chained = 0 < len(many) <= 2 and (1 if y.shape[0] == 6 != 5 else 2)
        for i in many:
            if i == 2:
                break
        else:
            z = z, "no two"
        assert not isinstance(z, int), f"{z}"
        return y, z, chained, not many, bool(many) == (len(many) > 0)

    def scenario(n):
        g = n.compile(f)
        for a, b, many in ((None, None, []), (1, None, [1, 2, 3, 4]), (None, 2.0, [2]), ([], "b", [5, 6, 7]), (0, 7, [])):
            n.call(g, t(), a, b, many)

    assert not [r for r in same(scenario) if "AssertionError" not in r]


def test_attributes_written_between_calls_are_seen():
    """Also where an object's attributes lie in the object itself, not in its dict."""
    leaky, net = strata.nn.LeakyReLU(0.1), strata.nn.Sequential(strata.nn.LeakyReLU(0.1), strata.nn.Threshold(1.0, 2.0))

    def f(x):
        return leaky(x) * 2

    def g(x):
        return net(x) + 1

    def scenario(n):
        cf, cg = n.compile(f), n.compile(g)
        for slope in (0.1, 0.2, 0.3):
            object.__setattr__(leaky, "negative_slope", slope)
            net[0].negative_slope, net[1].value = slope, slope * 5
            for _ in range(3):
                n.call(cf, t() - 3)
                n.call(cg, t() - 3)

    whole(scenario)


def test_classes_of_c_and_what_derives_from_them():
    class Line(collections.deque):
        pass

    def f(x):
        try:
            line = Line([1, 2])
            line.append(3)
            found = sum(line)
        except TypeError:
            found = "no line"
        starred = list(itertools.starmap(max, [(1, 2), (4, 3)]))
        return x * len(starred), found, starred, list(itertools.islice(itertools.count(2), 3))

    def sets(x, line):
        try:
            line.name = x + 1
        except AttributeError as error:
            return x * 2, str(error)
        return x, line.name

    def scenario(n):
        n.call(n.compile(f), t())
        for line in (itertools.count(), collections.deque([1]), functools.partial(f, 1)):
            n.call(n.compile(sets), t(), line)

    same(scenario)
