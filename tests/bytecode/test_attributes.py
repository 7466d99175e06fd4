"""Attributes that come and go, objects that two names share, methods that are replaced, generators that are left."""

import strata
from both import same
from strata import nn


def t():
    return strata.arange(3.0)


class Slotted:
    __slots__ = ("a", "b")


class Fallback:
    __slots__ = ("a",)

    def __getattr__(self, name):
        return 9

    @property
    def p(self):
        raise AttributeError("inner")


class Plain:
    pass


def test_what_is_not_there_is_guarded():
    def f(o, x):
        r = x + o.a
        o.a += 1
        try:
            r = r + o.b
        except AttributeError:
            r = r - 1
        return r, getattr(Plain(), "v", 7)

    def scenario(n):
        g, o, p = n.compile(f), Slotted(), Fallback()
        h = n.compile(lambda x: x + p.a + p.p)
        o.a = 1
        n.call(g, o, t()), n.call(h, t())
        Plain.v = None
        o.b = p.a = 100
        n.call(g, o, t()), n.call(h, t())
        del Plain.v, o.b, p.a
        n.call(g, o, t()), n.call(h, t())

    assert not same(scenario)


def test_names_that_share_what_is_written():
    def lists(a, b, x):
        a.append(1), b.append(2)
        return x * len(a) + len(b)

    def objects(a, b, x):
        a.n = 1
        b.n = 2
        return x + a.n

    def nested(d, items, x):
        d["l"].append(x)
        return len(d["l"]) + len(items)

    def pair():
        k = 0

        def step():
            nonlocal k
            k += 1
            return k

        return step, lambda: k

    def scenario(n):
        f, g, h, c = map(n.compile, (lists, objects, nested, lambda x, a, b: x * a() + b()))
        one, (a, b), (p, q) = [0], pair(), pair()
        o, u = Plain(), Plain()
        n.call(f, [0], [0], t()), n.call(f, one, one, t()), n.call(f, [0], [0], t())
        n.call(g, o, u, t()), n.call(g, o, o, t()), n.call(g, o, u, t())
        n.call(h, {"l": []}, [], t()), n.call(h, {"l": one}, one, t()), n.call(h, {"l": []}, [], t())
        n.call(c, t(), a, q), n.call(c, t(), a, b), n.call(c, t(), p, q), n.call(c, t(), p, b)

    assert not same(scenario)


def test_modules_that_share():
    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Counted(), Counted()

        def forward(self, x):
            return self.b(self.a(x)) + self.a.n

    def scenario(n):
        m = Two()
        f, b = n.compile(m), m.b
        n.call(f, t()), n.call(f, t())
        m.b = m.a
        n.call(f, t()), n.call(f, t())
        m.b = b
        n.call(f, t())

    assert not same(scenario)


def test_methods_that_are_replaced(monkeypatch):
    net = nn.Sequential(nn.Linear(3, 3))

    def scenario(n):
        f, g = n.compile(net), n.compile(lambda x: x.tanh())
        n.call(f, t()), n.call(g, t())
        with monkeypatch.context() as patch:
            patch.setattr(nn.Linear, "forward", lambda self, x: x - 1)
            patch.setattr(strata.Tensor, "tanh", lambda self: self * 0, raising=False)
            n.call(f, t()), n.call(g, t())
        n.call(f, t()), n.call(g, t())

    assert not same(scenario)


def test_generators_that_are_left():
    def numbers(n):
        try:
            yield from range(n)
        finally:
            print("closed", n)

    def f(x):
        for i in numbers(3):
            if i == 1:
                break
        return x + i + any(v > 0 for v in numbers(4))

    def scenario(n):
        g = n.compile(f)
        n.call(g, t()), n.call(g, t())

    assert "is left inside of a try or with" in same(scenario)[0]


def test_containers_that_hold_themselves():
    def scenario(n):
        items = [1]
        items.append(items)
        f = n.compile(lambda x: x + items[1][1][0])
        n.call(f, t())
        items[0] = 5
        n.call(f, t())

    same(scenario)
