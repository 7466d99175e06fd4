"""Constructs of Python that a capture once got wrong, and such that broke a graph: what they give is what they give as they are."""

import collections
import enum
import io
import itertools
import logging
import operator
import sys
import warnings

import pytest
import strata
from both import same
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
    def scenario(n):
        compiled = n.compile(f, fullgraph=True)
        n.call(compiled, t())
        n.call(compiled, t(4.0, 5.0, 6.0))

    assert same(scenario) == []


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
