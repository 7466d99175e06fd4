"""Iterators, deques, exceptions, modules and cached functions inside of what is compiled: what they give and leave is eager's."""

import collections
import enum
import functools
import io
import itertools
import logging
import math
import operator
import sys
import warnings

import pytest
import strata
from both import in_one_graph, same
from strata import nn


def t(*numbers):
    return strata.tensor(numbers or (1.0, 2.0, 3.0))


ITERATORS = [
    lambda x: [v * 2 for v in itertools.repeat(x, 2)],
    lambda x: [a * k for a, k in zip(itertools.repeat(x), [1, 2], strict=False)],
    lambda x: list(map(strata.add, [x, x], itertools.repeat(x))),
    lambda x: list(itertools.islice(itertools.count(x), 2)),
    lambda x: list(reversed([x, x * 2])),
]


@pytest.mark.parametrize("f", ITERATORS)
def test_iterators_that_hand_on_a_tensor(f):
    in_one_graph(f, (t(),), (t(4.0, 5.0, 6.0),))


def test_deques_with_a_bound():
    def scenario(n):
        held = collections.deque([1.0, 2.0], maxlen=3)

        def made(x):
            d = collections.deque(maxlen=2)
            d.append(x)
            return d, held + held, held * 2, held.copy()

        def fed(x):
            held.append(x.sum())
            return sum(held)

        compiled = n.compile(made)
        for _ in range(2):
            d, *others = compiled(t())
            d.append(1)
            d.append(2)
            n.say(d.maxlen, list(d), *others)
        feed = n.compile(fed, fullgraph=True)
        for _ in range(4):
            n.call(feed, t())
            n.say(held.maxlen, held)
        held = collections.deque([1.0], maxlen=2)
        n.call(feed, t())
        n.call(feed, t())
        n.say(held)

    same(scenario)


def test_items_deleted_by_a_function():
    def f(x, items):
        operator.delitem(items, 0)
        return x * 2

    def scenario(n):
        compiled, items = n.compile(f), [t(), 2, t(), 4, 5, 6]
        for _ in range(3):
            n.call(compiled, t(), items)
            n.say(items)

    same(scenario)


def test_attributes_of_members_and_named_tuples():
    class Kind(enum.Enum):
        A = 1

    class Pair(collections.namedtuple("Pair", "a b")):
        pass

    def marked(x):
        pair = Pair(x, 2)
        pair.note = "kept"
        return pair

    def scenario(n):
        Kind.A.scale = 2.0
        f = n.compile(lambda x: x * Kind.A.scale, fullgraph=True)
        for scale in (2.0, 5.0):
            Kind.A.scale = scale
            n.call(f, t())
        n.say(n.compile(marked)(t()).note)

    same(scenario)


def test_deleted_variables():
    def f(x, again):
        y = x
        try:
            if again:
                del y
            del y
            del y  # noqa: F821
        except UnboundLocalError as error:
            return x + 1, str(error)
        return x

    def scenario(n):
        compiled = n.compile(f)
        n.call(compiled, t(), True)
        n.call(compiled, t(), False)

    same(scenario)


def test_what_is_being_handled():
    text = io.StringIO()
    log = logging.getLogger("strata.test_what_is_being_handled")
    log.addHandler(logging.StreamHandler(text))
    log.propagate = False

    def current():
        return sys.exc_info()[0]

    def f(x):
        try:
            return x * int("bad"), None
        except ValueError:
            log.exception("failed")
            return x * 0, sys.exc_info()[0], current()

    def nested(x):
        try:
            raise KeyError("outer")
        except KeyError:
            try:
                x.sum().item()
                raise ValueError("inner")
            except ValueError:
                inner = current()
            return inner, current()

    def after(x):
        try:
            raise KeyError("outer")
        except KeyError:
            pass
        return x, current()

    def scenario(n):
        for function in (f, nested, after):
            n.call(n.compile(function), t())
        n.say("ValueError: invalid literal" in text.getvalue())

    same(scenario)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))


def each(layers, x):
    for layer in layers:
        x = layer(x)
    return x


PARTS = [
    lambda m, x: each(m.layers[1:], x),
    lambda m, x: each(m.layers[::2], x),
    lambda m, x: each(reversed(m.layers), x),
    lambda m, x: m.body[:2](x),
    lambda m, x: nn.Sequential(*m.layers)(x),
    lambda m, x: nn.Sequential(*list(m.body.children())[:-1])(x),
    lambda m, x: nn.Sequential(m.body, m.layers[0])(x),
]


@pytest.mark.parametrize("f", PARTS)
def test_parts_of_lists_of_modules(f):
    def scenario(n):
        net, x = Net(), t()
        compiled = n.compile(f, fullgraph=True)
        n.call(compiled, net, x)
        with strata.no_grad():
            for p in net.parameters():
                p.mul_(2)
        n.call(compiled, net, x)
        net.body[0] = nn.Linear(3, 3)
        net.layers[2].weight = nn.Parameter(strata.ones(3, 3))
        n.call(compiled, net, x)
        for m in (net.body[0], net.layers[2]):
            m.register_forward_hook(lambda m, args, out: out * 2)
        n.call(compiled, net, x)
        compiled(net, x).sum().backward()
        n.say([p.grad for p in net.parameters()])

    assert same(scenario) == []


def test_graph_modules():
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 2)

        def forward(self, x):
            return strata.relu(self.lin(x)) if not strata.jit.is_scripting() and not strata.jit.is_tracing() else x

    def scenario(n):
        x = t()
        for made in (strata.fx.symbolic_trace(Head()), strata.export.export(Head(), (x,)).module()):
            n.call(n.compile(made, fullgraph=True), x)
            n.call(n.compile(lambda x, made=made: made(x) + 1, fullgraph=True), x)

    assert same(scenario) == []


def test_attributes_of_a_compiled_function():
    def f(x):
        return x

    class Holder:
        def g(self, x):
            return x

    f.tag, Holder.g.tag = 3, 4
    assert strata.compile(f).tag == 3
    assert strata.compile(Holder().g).tag == 4
    assert strata.compile(f).__wrapped__ is f


def test_lazy_modules():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            layer = nn.LazyLinear(2)
            compiled = strata.compile(layer)
            x = strata.ones(2, 3)
            assert compiled(x).equal(layer(x))
            assert compiled(x * 2).equal(layer(x * 2))


def test_functions_that_keep_their_results():
    def scenario(n):
        calls, number = [], [3]

        @functools.lru_cache(maxsize=2)
        def noted(a, b=1.5):
            calls.append(a)
            return a + b

        @functools.cache
        def mask(size):
            return strata.ones(size, size).tril()

        @functools.cache
        def held():
            return number[0]

        class Recipe:
            def __init__(self, k):
                self.k = k

        @functools.cache
        def recipe(k, names):
            return Recipe(k * len(names))

        @functools.cache
        def of_recipe(r, k):
            return r.k + k

        def f(x):
            r = recipe(2, ("a", "b"))
            return (x @ mask(x.shape[-1]) * noted(2, b=0.5) + noted(x.shape[0])) * held() + r.k + of_recipe(r, 3)

        compiled = n.compile(f, fullgraph=True)
        for _ in range(2):
            n.call(compiled, t())
        n.say(calls, mask(3), mask.cache_info().misses)
        noted.cache_clear()
        n.call(compiled, t())
        number[0] = 7
        n.call(compiled, t())
        held.cache_clear()
        n.call(compiled, t())
        n.call(compiled, t(1.0, 2.0))
        recipe.cache_clear()
        n.call(compiled, t())
        n.say(calls)

    assert same(scenario) == []


def test_cached_functions_of_objects_break():
    def scenario(n):
        @functools.cache
        def number(a):
            return 2.0 if isinstance(a, strata.Tensor) else 3.0

        n.call(n.compile(lambda x: x * number(x)), t())

    assert len(same(scenario)) == 1


@strata.autocast("cpu", enabled=False)
def plainly(x):
    return x @ x.T


@strata.autocast("cpu", dtype=strata.bfloat16)
def narrowly(x):
    return x @ x.T


def test_functions_under_autocast():
    def scenario(n):
        f = n.compile(lambda x: (plainly(x) + 1, narrowly(x)), fullgraph=True)
        n.call(f, strata.ones(2, 3))
        with strata.autocast("cpu", dtype=strata.bfloat16):
            n.call(f, strata.ones(2, 3))

    assert same(scenario) == []


def power(n):
    return 2 ** math.ceil(math.log2(n))


class Scaled(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * power(x.shape[0]) * Scaled.factor(3)

    @staticmethod
    def backward(ctx, g):
        return g * 4 * power(5)

    @staticmethod
    def factor(n):
        return n + power(2)


def test_functions_of_custom_gradients():
    def scenario(n):
        f = n.compile(lambda x: Scaled.apply(x), fullgraph=True)
        before = power.__code__, Scaled.factor
        try:
            for change in (None, lambda n: 7):
                if change is not None:
                    power.__code__ = change.__code__
                x = strata.ones(3, 2, requires_grad=True)
                n.call(f, x)
                f(x).sum().backward()
                n.say(x.grad)
            Scaled.factor = staticmethod(lambda n: n + 100)
            n.call(f, strata.ones(3, 2))
        finally:
            power.__code__, Scaled.factor = before[0], staticmethod(before[1])

    assert same(scenario) == []


def test_subclasses():
    class Base:
        pass

    def scenario(n):
        f = n.compile(lambda x: x * len(Base.__subclasses__()), fullgraph=True)
        n.call(f, t())
        kept = type("More", (Base,), {})
        n.call(f, t())
        del kept
        import gc

        gc.collect()

    assert same(scenario) == []


def test_imports_inside(tmp_path, monkeypatch):
    (tmp_path / "inside_package").mkdir()
    (tmp_path / "inside_package" / "__init__.py").write_text("import strata\nmade = strata.ones(3)\n")
    (tmp_path / "inside_package" / "part.py").write_text("factor = 3\n")
    monkeypatch.syspath_prepend(tmp_path)

    def f(x):
        import inside_package
        from inside_package import part

        return (x + inside_package.made) * part.factor

    compiled = strata.compile(f, fullgraph=True)
    assert compiled(t()).tolist() == [6, 9, 12] and f(t()).tolist() == [6, 9, 12]
    assert not sys.modules["inside_package"].made.is_meta
    for name in ("inside_package", "inside_package.part"):
        del sys.modules[name]
