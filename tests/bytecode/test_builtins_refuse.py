"""Builtins with arguments that they refuse, and with what special methods should not give: the errors are CPython's, and the capture goes on."""

from __future__ import annotations

import collections.abc
import functools
import itertools
import types
import typing

import pytest
import strata
from strata import nn
from strata.nn import functional as F


class Gives:
    def __init__(self, value):
        self.value = value

    def _give(self, *_):
        return self.value

    __bool__ = __str__ = __repr__ = __int__ = __float__ = _give


class Long:
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length


class Declines:
    def __sub__(self, other):
        return NotImplemented

    __rsub__ = __add__ = __mul__ = __sub__


class Dict(typing.TypedDict):
    a: int


class ByKeys:
    """A mapping to dict(), and a sequence of pairs to iter()."""

    def keys(self):
        return ["ab"]

    def __getitem__(self, key):
        return 5

    def __iter__(self):
        return iter(["xy"])


class Mapping(collections.abc.Mapping):
    def __iter__(self):
        return iter(["a"])

    def __getitem__(self, key):
        return 5

    def __len__(self):
        return 1


TEXTS = """
print('a', foo=1); print(1, sep=5); map(abs, 5); map(abs); map(5); filter(None, 5); itertools.chain.from_iterable(5); object(1)
type(map(abs, [1])).__name__; isinstance(map(abs, [1]), map); isinstance(filter(abs, [1]), types.GeneratorType); hasattr(map(abs, [1]), 'send')
list(map(abs, [-1])); next(map(abs, [-1])); list(filter(None, [0, 1])); list(map(lambda a, b: a + b, [1, 2], [3, 4])); map(abs, [1]).send(None)
type(Dict(a=1)).__name__; Dict(a=1); bool(Gives(1)); 1 if Gives(1) else 2; bool(Gives(True)); str(Gives(5)); repr(Gives(None)); int(Gives(2.5)); float(Gives(3))
len(Long(True)); len(Long(-1)); bool(Long(-1)); len(Long(3)); {**5}; Declines() - 1; 1 - Declines(); Declines() + 'a'; Declines() * Declines()
len(); isinstance(1); getattr(x); getattr(x, 5); hasattr(x); hasattr(x, 5); setattr(x, 'a'); next(); iter(); sorted(); any(); callable(); set(5); frozenset(5)
functools.partial(); functools.partial(5); x in 5; object.__new__(5); sorted([1], 5); sorted([2, 1], reverse=True); frozenset('ab'); max(); abs(); range()
zip(5); enumerate(); reversed(5); int('z'); sum(5); dict(ByKeys()); dict(Mapping(), z=2); {'q': 1} | dict(Mapping()); dict([(1, 2)])
"""


@pytest.mark.parametrize("text", TEXTS.strip().replace("\n", "; ").split("; "))
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_error_is_cpythons(text, capsys):
    names = {**globals()}
    exec(f"def f(x):\n  try: r = {text}\n  except Exception as e: return x * 2, type(e).__name__, str(e)\n  return x * 3, r", names)
    x = strata.ones(2)
    want, got = names["f"](x), strata.compile(names["f"], fullgraph=True)(x)
    assert want[0].equal(got[0]) and want[1] == got[1] or (type(want[1]) is type(got[1]) and not isinstance(want[1], (str, int, dict, list)))


def test_causes_that_are_none():
    def f(x, cause):
        try:
            raise ValueError("a") from cause
        except Exception as e:
            return x * 2, type(e), type(e.__cause__)

    for cause in (5, KeyError, None):
        want, got = f(strata.ones(2), cause), strata.compile(f)(strata.ones(2), cause)
        assert want[0].equal(got[0]) and want[1:] == got[1:]


def test_partials_of_partials_are_read():
    f = strata.compile(lambda x, p: functools.partial(p, x)())
    x = strata.ones(2)
    for p in (functools.partial(lambda x, k: x * k, k=2), functools.partial(lambda x, k: x * k, k=3), functools.partial(lambda k, x: x * k, 100)):
        assert f(x, p).equal(functools.partial(p, x)())

    told = [1]
    p = functools.partial(lambda items, x: (items.append(1), x * len(items))[1], told)
    g = strata.compile(lambda x: functools.partial(p, x)())
    assert [g(x)[0].item() for _ in range(3)] == [2, 3, 4] and told == [1] * 4

    layer = nn.Linear(2, 2)
    weighed = functools.partial(F.linear, weight=layer.weight)

    def h(x):
        return functools.partial(weighed, bias=layer.bias)(x)

    compiled = strata.compile(h, fullgraph=True)
    assert compiled(x).equal(h(x))
    layer.weight = nn.Parameter(strata.zeros(2, 2))
    assert compiled(x).equal(h(x)) and not h(x).equal(layer(x))


assert itertools and types and Mapping  # for the texts
