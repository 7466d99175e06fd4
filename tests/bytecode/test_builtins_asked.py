"""Builtins on objects of the program: each asks the method that Python's asks, and iterates nothing that Python's does not."""

import operator

import pytest
import strata
from strata import nn


class Many:
    def __init__(self):
        self.asked = 0

    def __len__(self):
        return 10

    def __iter__(self):
        self.asked += 1
        return iter([1, 2])

    def __str__(self):
        return "many"

    def __bool__(self):
        return False

    def __eq__(self, other):
        return other == "me"

    def __mul__(self, k):
        return 12

    def __contains__(self, k):
        return k == 7

    __hash__ = None


class Dict(dict):
    def __iter__(self):
        return iter(["x", "y"])


class List(list):
    def __iter__(self):
        return iter([7])


class Meta(type):
    def __len__(cls):
        return 5

    def __iter__(cls):
        return iter([1])


class Counted(metaclass=Meta):
    pass


class Cache:
    def __init__(self):
        self.layers = [1.0, 2.0, 3.0]

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        for i in range(len(self)):
            yield self.layers[i]


CALLS = {
    "len": len, "str": str, "bool": bool, "format": "{}".format, "eq": lambda a: operator.eq(a, "me"), "mul": lambda a: operator.mul(a, 2),
    "truth": operator.truth, "not": operator.not_, "contains": lambda a: operator.contains(a, 7), "is": lambda a: operator.is_(a, a),
    "sum": sum, "max": max, "min": min, "list": list, "sorted": sorted, "text": lambda a: f"{a}",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("make", [Many, lambda: Dict(a=1), lambda: List([1, 2, 3])])
def test_of_objects(name, make):
    f = CALLS[name]

    def outcome(g):
        value = make()
        try:
            found = g(strata.ones(1), value)[1]
        except TypeError as error:
            found = str(error)
        return found, getattr(value, "asked", None)

    def called(x, value):
        return x + 1, f(value)

    assert outcome(called) == outcome(strata.compile(called))


@pytest.mark.parametrize("f", [bool, operator.truth, operator.not_, lambda g: operator.is_(g, g), lambda g: (bool(g), list(g))])
def test_of_generators(f):
    def called(x):
        return x + 1, f(i * 2 for i in [])

    assert called(strata.ones(1))[1] == strata.compile(called)(strata.ones(1))[1]


def test_of_classes_and_sentinels():
    def called(x):
        values = iter([3, 4, 5])
        return x + len(Counted), list(iter(lambda: next(values), 5)), next(iter(lambda: 3, 4))

    want, got = called(strata.ones(1)), strata.compile(called, fullgraph=True)(strata.ones(1))
    assert want[0].tolist() == got[0].tolist() and want[1:] == got[1:]


def test_lists_of_parameters_and_caches_in_one_graph():
    parameters, cache = nn.ParameterList([strata.ones(2), strata.full((2,), 3.0)]), Cache()

    def called(x):
        x = x + len(parameters) + parameters[0] + len(cache)
        for p in parameters:
            x = x * p
        for layer in cache:
            x = x + layer
        return x

    compiled = strata.compile(called, fullgraph=True)
    assert compiled(strata.ones(2)).tolist() == called(strata.ones(2)).tolist()
    cache.layers.append(5.0)
    assert compiled(strata.ones(2)).tolist() == called(strata.ones(2)).tolist()


class Wrapping(nn.Module):
    """Hands on what it lacks, as wrappers of models do."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x):
        return x @ self.weight + self.inner(x)


def test_modules_that_hand_on_what_they_lack():
    net, x = Wrapping(), strata.ones(3, 2)
    compiled = strata.compile(net, fullgraph=True)
    assert strata.equal(compiled(x), net(x))
    net.inner = nn.Linear(2, 2)
    assert strata.equal(compiled(x), net(x))
    with strata.no_grad():
        net.inner.weight.mul_(2)
    assert strata.equal(compiled(x), net(x))

    def absent(x):
        try:
            return x + net.nothing
        except AttributeError as error:
            return x * len(str(error))

    assert strata.equal(strata.compile(absent, fullgraph=True)(x), absent(x))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_recording_is_set_for_a_block(flag, outside):
    def f(x, n):
        with strata.set_grad_enabled(n > 1):
            y = x * 3
        return y * x

    compiled = strata.compile(f, fullgraph=True)
    for g in (f, compiled, compiled):
        x = strata.ones(2, requires_grad=True)
        with strata.set_grad_enabled(outside):
            found = g(x, 2 if flag else 0)
            assert strata.is_grad_enabled() is outside
        assert found.requires_grad is outside
        if outside:
            found.sum().backward()
            assert x.grad.tolist() == [6.0 if flag else 3.0] * 2


def test_small_builtins():
    def f(x):
        return x * strata.Tensor([2, 3]) + len(dict.fromkeys([1, 2, 1], x)) + (hash("a") == hash("a")), dict.fromkeys("ab", 7)

    want, got = f(strata.ones(2)), strata.compile(f, fullgraph=True)(strata.ones(2))
    assert want[0].tolist() == got[0].tolist() and want[1] == got[1]
