"""Containers of classes that derive from list, dict and OrderedDict."""

import collections
from dataclasses import dataclass, fields

import strata
from both import same


def t():
    return strata.arange(3.0)


class Output(collections.OrderedDict):
    """As libraries of models write results: items are attributes, too."""

    def __post_init__(self):
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None:
                self[f.name] = value

    def update(self, *args, **kwargs):
        raise RuntimeError("no update")

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return self.to_tuple()[k]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


@dataclass
class Layers(Output):
    last: object = None
    hidden: object = None


def test_outputs_of_models():
    def make(x, k):
        o = Layers(last=x + k, hidden=(x, x * 2) if k > 1 else None)
        if k > 2:
            o.last = o.last * 2
        return o, o[0], o["last"], len(o), list(o.keys()), o.to_tuple(), "hidden" in o

    def take(o, x):
        o.last = o.last + x
        o["extra"] = x
        return o[0] * 2 + len(o), dict(o.items()), [*o]

    def scenario(n):
        f, g = n.compile(make), n.compile(take)
        for k in (1, 2, 3, 1):
            n.call(f, t(), k)
        o = Layers(last=t())
        n.call(g, o, t()), n.call(g, o, t())
        n.say(o, vars(o))

    assert not same(scenario)


class Attributes(dict):
    def __init__(self, given=None, **more):
        for k, v in {**(given or {}), **more}.items():
            setattr(self, k, v)

    def __setattr__(self, name, value):
        if isinstance(value, dict) and not isinstance(value, Attributes):
            value = Attributes(value)
        super().__setattr__(name, value)
        super().__setitem__(name, value)

    __setitem__ = __setattr__


class Short(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


def test_settings_with_attributes():
    def scenario(n):
        c, d = Attributes(lr=1, net={"w": 2, "d": [1, 2]}), Short(n=2)

        def f(x):
            c.step = c.get("step", 0) + 1
            c.net.w += 1
            c["net"]["d"].append(c.step)
            d.seen = d.n
            made = Attributes(a=x, b={"q": 1})
            return x * c.lr + c.net.w + c["step"] + d.n, made.a + made.b.q, made, d.missing

        g = n.compile(f)
        n.call(g, t()), n.call(g, t())
        c.lr, d.n = 5, 7
        n.call(g, t())
        c["new"] = 1
        n.call(g, t())
        n.say(c, vars(c), d)

    assert not same(scenario)


class Own(dict):
    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


def test_a_dict_that_holds_its_attributes_breaks():
    def scenario(n):
        d = Own(n=2)

        def f(x):
            d.n += 1
            return x * d.n + d["n"]

        g = n.compile(f)
        n.call(g, t()), n.call(g, t())
        n.say(d.n)

    assert "whose attributes are the items of a dict" in same(scenario)[0]


class Items(list):
    n = 0

    def append(self, v):
        self.n += 1
        super().append(v)

    def __getitem__(self, i):
        return super().__getitem__(i) * 10

    @property
    def first(self):
        return list.__getitem__(self, 0)


def test_lists():
    def scenario(n):
        items = Items([1, 2])

        def f(x):
            items.append(3)
            made = Items((4, 5))
            made.append(x)
            made.tag = "t"
            return x + items[0] + items.first + len(items), made, sum(items), [*items], items.n, 3 in items, bool(Items())

        g = n.compile(f)
        n.call(g, t()), n.call(g, t())
        items[0] = 100
        n.call(g, t())
        n.say(items, vars(items))

    assert not same(scenario)


def test_what_native_methods_would_call_breaks():
    class Counted(collections.OrderedDict):
        hits = 0

        def __getitem__(self, k):
            self.hits += 1
            return super().__getitem__(k)

    def f(x):
        made = Counted([("z", x)], y=2)
        return made["z"], made.hits, dict(**made), made.pop("y"), made.hits

    def scenario(n):
        g = n.compile(f)
        n.call(g, t()), n.call(g, t())

    assert "OrderedDict.pop of a Counted" in same(scenario)[0]


class Pair(tuple):
    kind = "pair"

    def first(self):
        return self[0]

    @classmethod
    def of(cls, *items):
        return cls(items)


class Totals(dict):
    def total(self):
        return sum(self.values())

    def __missing__(self, key):
        return 0


class Named(dict):
    def __init__(self, x, **items):
        super().__init__(items)
        self.x = x


class Lines(list):
    def __init__(self, *parts):
        super().__init__(p for p in parts)

    def push(self, v):
        self.append(v)
        return self


def test_containers_made_of_tensors():
    """By their bases' constructors, which get tensors among items and pairs: without a break."""

    def pairs(x):
        t = Pair((x, x + 1))
        t.name = x * 2
        first, last = t
        return t, t.first(), t.kind, len(t), t + (x,), Pair.of(first, last), Pair(v for v in t), Pair(), isinstance(t, tuple), t[::-1]

    def dicts(x):
        d = Totals(a=x, b=x + 1)
        return d, d.total(), d["c"] + x, Totals([("a", x)]), Totals({"a": x}, b=x), Totals(d), Named(x, y=x * 2), Named(x).x, Totals()

    def lists(x):
        return Lines(x, x + 1).push(x), Lines(), Lines(*[x] * 3)[1:], Lines({"a": 1}) + [x]

    def taken(t):
        return t.first() * t[1], Pair((t, 1))

    def scenario(n):
        for f in (pairs, dicts, lists):
            g = n.compile(f, fullgraph=True)
            n.call(g, t()), n.call(g, t() * 2), n.call(g, t().requires_grad_())
        g = n.compile(taken, fullgraph=True)
        n.call(g, Pair((t(), 3))), n.call(g, Pair((t(), 4))), n.call(g, Pair((t(), t())))

    assert not same(scenario)


class Answers(Totals):
    def __getitem__(self, key):
        return "answer"


class Pairs(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, (value, 1))


def test_dicts_made_of_mappings():
    """A dict that iterates as dicts do gives its items as they are; what has keys is asked for them, by an OrderedDict always."""

    def make(x):
        user, answers = collections.UserDict({"ab": x, "cde": 1}), Answers(ab=x)
        return Totals(user), Output(user), Totals(collections.ChainMap({"a": x}, {"b": 1})), dict(answers), {**answers}, Totals(answers), Pairs(user), Pairs([("a", x)], b=x)

    def take(user, x):
        return Totals(user), dict(self=x), Totals(self=x), Totals(zip("ab", (x, x), strict=True)), Totals({"a": x}.items())

    def scenario(n):
        f, g = n.compile(make, fullgraph=True), n.compile(take)
        n.call(f, t()), n.call(g, collections.UserDict({"abc": t()}), t())

    assert not same(scenario)


def test_tuples_with_other_bases():
    class Notes:
        def __init__(self, *given):
            self.given = given

    class False_:
        def __bool__(self):
            return False

    class Noted(tuple, Notes):
        pass

    class Never(tuple, False_):
        pass

    def scenario(n):
        for kind in (Noted, Never):
            n.call(n.compile(lambda x, kind=kind: kind((x,))), t())

    same(scenario)


def test_tuples_that_make_their_elements_otherwise():
    class Doubled(tuple):
        def __new__(cls, items):
            return super().__new__(cls, (i * 2 for i in items))

    class Odd(tuple):
        def __getitem__(self, i):
            return -super().__getitem__(i)

    def scenario(n):
        for kind in (Doubled, Odd):
            f = n.compile(lambda x, kind=kind: (kind((x, x + 1)), kind((x,))[0]))
            n.call(f, t())

    assert same(scenario)
