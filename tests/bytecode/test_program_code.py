"""Compiled functions beside the same as they are, over calls with changes in between: code of the program that builtins call, what
hooks, handlers and iterators see."""

import collections
import enum
import functools
import itertools
import operator

import pytest
import strata
from strata import nn

T = strata.tensor
STATE = {"k": 1}


class Scaled:
    def __init__(self, k):
        self.k = k

    def __abs__(self):
        return abs(self.k)

    def __mul__(self, other):
        return self.k * other


class OfState(type):
    def __getattr__(cls, name):
        return STATE[name]


class Config(metaclass=OfState):
    pass


class Item:
    def __class_getitem__(cls, key):
        return STATE["k"] * key


class Pair(collections.namedtuple("Base", "a b")):
    def __new__(cls, a, b):
        return super().__new__(cls, a * STATE["k"], b)


class Named(collections.namedtuple("Base", "a")):
    k = 0


class Refused(Exception):
    @property
    def k(self):
        return STATE["k"]


class Forgiving(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value):
        STATE["asked"] = STATE.get("asked", 0) + 1
        return cls.A


class Sequence:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        if i >= STATE["k"] + 2:
            raise IndexError
        return i


class Left:
    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"

    def __rmod__(self, other):
        return "rmod"

    def __str__(self):
        return "left"


class Right(Left):
    pass


class Overriding(Left):
    def __radd__(self, other):
        return "mine"


class Weight(float):
    def __rmul__(self, other):
        return "rmul"


class Borg:
    shared = {"n": 1}

    def __init__(self):
        self.__dict__ = Borg.shared


def caught():
    try:
        raise Refused
    except Refused as error:
        return error.k


def set_borg(a, b):
    a.n = STATE["k"]
    return b.n


READS = {
    "abs": lambda v: abs(v),
    "reduce": lambda v: functools.reduce(operator.mul, [v, 2]),
    "operator": lambda v: operator.mul(v, 3),
    "format": lambda v: "{.k}".format(*[v]),
    "metaclass": lambda v: Config.k,
    "class item": lambda v: Item[2],
    "named tuple": lambda v: Pair(1, 2).a,
    "exception": lambda v: caught(),
    "items": lambda v: list(Sequence()),
    "shared dict": lambda v: set_borg(Borg(), Borg()),
}


@pytest.mark.parametrize("name", READS)
def test_what_the_programs_code_reads_is_read_anew(name):
    read = READS[name]
    compiled = strata.compile(lambda x, v: (x + 1, read(v)))
    value = Scaled(2)
    for k in (1, 4, 5):
        STATE["k"] = value.k = k
        assert compiled(T(1.0), value)[1] == read(value), (name, k)


def test_an_enum_is_asked_at_each_call():
    compiled = strata.compile(lambda x, v: x * Forgiving(v).value)
    STATE["asked"] = 0
    for _ in range(3):
        compiled(T(1.0), 7)
    assert STATE["asked"] == 3


def test_getters_and_attributes_of_tuples():
    compiled = strata.compile(lambda x, get: x * get([1, 2, 3]))
    assert [compiled(T(1.0), operator.itemgetter(i)).item() for i in (0, 2, 1)] == [1, 3, 2]
    named = Named([1])
    read = strata.compile(lambda x, v: x * v.k)
    assert read(T(1.0), named) == 0
    named.k = 5
    assert read(T(1.0), named) == 5


def test_operators_are_asked_in_pythons_order():
    def f(x, a, b, c, w):
        return a + b, a + c, "%s" % a, x * w, 2 * w  # noqa: UP031

    args = (T(2.0), Left(), Right(), Overriding(), Weight(3))
    assert strata.compile(f)(*args) == f(*args) == ("add", "mine", "left", T(6.0), "rmul")


def test_texts_that_tell_addresses():
    compiled = strata.compile(lambda x, o: (x, f"{o}", str([o]), repr(o)))
    for _ in range(2):
        o = type("Plain", (), {})()
        assert compiled(T(1.0), o)[1:] == (str(o), str([o]), repr(o))


def events(x, seen):
    def given(n):
        for i in range(n):
            seen.append(("gives", i))
            yield i

    found = []
    numbers = given(5)
    found += [list(itertools.islice(numbers, 1, 3)), list(numbers)]
    for make in (
        lambda: itertools.pairwise(given(3)), lambda: itertools.chain(given(2), given(1)), lambda: itertools.accumulate(given(3)),
        lambda: itertools.zip_longest(given(2), [5, 6, 7], fillvalue=0), lambda: itertools.islice(given(4), 3),
        lambda: itertools.accumulate([], initial=4), lambda: zip(given(2), given(3)), lambda: enumerate(Sequence()),
    ):  # fmt: skip
        for item in make():
            seen.append("takes")
            found.append(item)
    for strict in ((2, 3), (3, 2)):
        try:
            found.append(list(zip(given(strict[0]), given(strict[1]), strict=True)))
        except ValueError as error:
            found.append(str(error))
    found += [max([], key=abs, default=3), min([3, -1], key=abs, default=0)]
    try:
        max([], key=abs)
    except ValueError:
        found.append("empty")
    return x + 1, found


def test_iterators_are_asked_when_python_asks():
    want, got = [], []
    expected, found = events(T(1.0), want), strata.compile(events)(T(1.0), got)
    assert found[1] == expected[1] and got == want


def test_handlers_see_what_operators_raise_by_values():
    def factor(a):
        try:
            return strata.linalg.cholesky(a)
        except strata.linalg.LinAlgError:
            return strata.linalg.cholesky(a + 10 * strata.eye(2))

    def pick(x, i, seen):
        try:
            return x[i] * 2
        except IndexError:
            return x
        finally:
            seen.append(1)

    compiled = strata.compile(factor)
    assert strata.equal(compiled(strata.eye(2)), strata.eye(2)) and strata.equal(compiled(-strata.eye(2)), 3 * strata.eye(2))
    compiled, seen = strata.compile(pick), []
    x = strata.ones(3)
    assert compiled(x, T([1]), seen).tolist() == [2] and compiled(x, T([7]), seen).tolist() == [1, 1, 1] and seen == [1, 1]


def test_functions_that_modules_were_made_with():
    scale, calls = [1.0], []

    def act(x):
        calls.append(1)
        return strata.relu(x) * scale[0]

    module = nn.TransformerEncoderLayer(4, 2, 8, activation=act, batch_first=True, dropout=0.0)
    compiled, x = strata.compile(lambda x: module(x) * 1), strata.ones(1, 3, 4)
    loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1) * scale[0])
    compiled_loss, rows = strata.compile(lambda *a: loss(*a)), (strata.ones(2, 3), strata.zeros(2, 3), strata.rand(2, 3))
    for scale[0] in (1.0, 5.0):
        before = len(calls)
        found = compiled(x)
        assert len(calls) == before + 1
        assert strata.equal(found, module(x)) and strata.equal(compiled_loss(*rows), loss(*rows))


def test_new_attributes_come_in_the_order_of_their_first_write():
    def write(x, o):
        o.a, o.b = 1, 2
        o.a = 3
        return x + 1

    o = type("Plain", (), {})()
    strata.compile(write)(T(1.0), o)
    assert vars(o) == {"a": 3, "b": 2} and list(vars(o)) == ["a", "b"]


def test_hooks_that_come_and_go_between_steps():
    found = []
    for compile in (lambda f: f, strata.compile):
        p = nn.Parameter(T([1.0]))
        optimizer, seen = strata.optim.SGD([p], lr=0.1), []

        def step(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            (p * 2).sum().backward()
            optimizer.step()

        run = compile(step)
        run()
        run()
        hook = p.register_hook(lambda g, seen=seen: (seen.append("hook"), g * 0)[1])
        after = p.register_post_accumulate_grad_hook(lambda q, seen=seen: seen.append("after"))
        run()
        values = [p.grad.item(), p.item()]
        hook.remove()
        after.remove()
        run()
        found.append((values, p.item(), seen, p._backward_hooks))
    assert found[0] == found[1] and found[0][2] == ["hook", "after"] and not found[0][3]
