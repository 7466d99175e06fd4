"""How arguments of a compiled function come to its parameters: as Python does it, errors too, without Python where an entry is there."""

from __future__ import annotations

import itertools

import pytest
import strata


def plain(a, b):
    return a + b


def defaults(a, b=2, c=3):
    return a * b + c


def only(a, *, b, c=3):
    return a * b + c


def rest(a, *more):
    return a + len(more) + sum(more)


def named(a, b=1, **more):
    return a * b, sorted(more.items())


def every(a, b, /, c, d=4, *more, e, f=6, **others):
    return a + b + c + d + sum(more) + e + f, sorted(others.items())


def nothing():
    return strata.ones(2)


def many(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0=1, c1=1, c2=1, c3=1, c4=1, c5=1):
    return a0 + a1 + b9 + c5


CALLS = [
    *itertools.product(((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4, 5, 6)), ({}, {"b": 5}, {"c": 7}, {"a": 1}, {"e": 2}, {"c": 3, "e": 2, "zz": 9}, {"b": 1, "f": 2, "e": 3})),
    (tuple(range(19)), {}),
    (tuple(range(19)), {"b9": 1, "c5": 2}),
]


def outcome(f, args, kwargs):
    try:
        return f(strata.tensor([1.0, 2.0]), *args, **kwargs), None
    except TypeError as error:
        return None, str(error)


@pytest.mark.parametrize("f", [plain, defaults, only, rest, named, every, many])
def test_arguments_come_to_parameters_as_in_python(f):
    compiled = strata.compile(f, dynamic=False)
    for args, kwargs in CALLS:
        (want, why), seen = outcome(f, args, kwargs), []
        for _ in range(3):  # captured, then from C
            found, said = outcome(compiled, args, kwargs)
            assert said == why
            seen.append(str(found))
        assert seen == [str(want)] * 3


def test_methods_and_no_arguments():
    class Thing:
        def __init__(self):
            self.w = strata.ones(2)

        def go(self, x, k=2, *more, s=1):
            return self.w * x * k * s + len(more)

    thing = Thing()
    bound = strata.compile(thing.go)
    for _ in range(2):
        assert bound(strata.ones(2)).tolist() == [2, 2]
        assert bound(strata.ones(2), 3, 4, s=5).tolist() == [16, 16]
        assert bound(x=strata.ones(2), s=2).tolist() == [4, 4]
        with pytest.raises(TypeError, match="multiple values for argument 'x'"):
            bound(strata.ones(2), x=strata.ones(2))
        assert strata.compile(nothing)().tolist() == [1, 1]


def test_defaults_and_code_that_change_are_seen():
    def f(x, k=2, *, s=1):
        return x * k * s

    compiled, x = strata.compile(f), strata.ones(1)
    for _ in range(2):
        assert compiled(x).item() == 2
    f.__defaults__ = (3,)
    assert compiled(x).item() == 3
    f.__kwdefaults__ = {"s": 5}
    assert compiled(x).item() == 15
    f.__kwdefaults__ = None
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 's'"):
        compiled(x)
    f.__code__ = (lambda x, k, **s: x + k).__code__
    assert compiled(x).item() == 4
