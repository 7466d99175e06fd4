"""80 constructs of Python, and what becomes of each in strata.compile: captured whole, broken with a reason, or raised.

A row: name, function, makers of its arguments, and what is expected: None (one graph, no break), a text of the reason of
the first break, or an exception's text.
"""

import collections
import contextlib
import dataclasses
import enum
import functools
import operator

import strata
from strata import nn

ROWS = []


def t():
    return strata.arange(4.0)


def row(expected=None, *makers):
    def add(f):
        ROWS.append((f.__name__, f, makers or (t,), expected))
        return f

    return add


SCALE = 2.0
TABLE = {"a": 1.5}
STATE = [0]


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2

    def total(self):
        return self.x + self.y


@dataclasses.dataclass(frozen=True)
class Fixed:
    a: int
    b: float = 0.5


Pair = collections.namedtuple("Pair", "first second")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Base:
    factor = 3

    def __init__(self, n):
        self.n = n

    def scaled(self, x):
        return x * self.n

    @property
    def double(self):
        return self.n * 2

    @classmethod
    def make(cls, n):
        return cls(n)

    @staticmethod
    def plus(x):
        return x + 1

    def __call__(self, x):
        return self.scaled(x) + self.factor


class Derived(Base):
    def __init__(self, n):
        super().__init__(n + 1)
        self.extra = 5

    def scaled(self, x):
        return super().scaled(x) + self.extra


class Vector:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(self.data + other.data)

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.data[i]

    def __eq__(self, other):
        return isinstance(other, Vector)

    __hash__ = None


class Slots:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


@contextlib.contextmanager
def doubled(box):
    box.append(2)
    yield box
    box.append(3)


class Manager:
    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *error):
        self.log.append("out")
        return False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"act": nn.Tanh(), "norm": nn.LayerNorm(4)})
        self.register_buffer("calls", strata.zeros(1))
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + x
        self.calls += 1
        return self.seq(self.named["norm"](self.named["act"](x)))


class Square(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


NET = Net()
HOOKED = nn.Linear(4, 4)
HOOKED.register_forward_hook(lambda module, args, output: output * 2)
DROP = nn.Dropout(0.5)
BATCH = nn.BatchNorm1d(4)


@row()
def closure(x):
    k = 3

    def inner(y):
        return y * k

    return inner(x)


@row()
def nonlocal_variable(x):
    total = 0

    def add(n):
        nonlocal total
        total += n

    add(2)
    add(3)
    return x + total


@row(None, t, lambda: 3)
def keyword_arguments(x, n=1, *, scale=2.0):
    def inner(a, b=2, *rest, c=3, **more):
        return a * b + c + len(rest) + sum(more.values())

    return inner(x, n, 7, 8, c=4, z=5) * scale


@row()
def star_arguments(x):
    args = (x, 2)
    return operator.mul(*args) + functools.partial(lambda a, b: a - b, x)(b=1)


@row()
def list_comprehension(x):
    return sum([x * i for i in range(4) if i % 2])


@row()
def dict_comprehension(x):
    return {k: x * v for k, v in zip("ab", (1, 2), strict=True)}


@row()
def set_comprehension(x):
    return x * len({i % 3 for i in range(10)})


@row()
def generator_expression(x):
    return sum(x * i for i in range(3)), max(i * i for i in range(4))


@row()
def generator_function(x):
    def gen():
        for i in range(3):
            yield x + i

    return strata.stack(list(gen()))


@row()
def yield_from(x):
    def inner():
        yield x
        yield x * 2

    def outer():
        yield from inner()
        yield x * 3

    return [v.sum() for v in outer()]


@row()
def f_string(x):
    name = f"{SCALE:.1f}-{len(TABLE)}-{'a'!r}"
    return {name: x}


@row()
def string_methods(x):
    return {"-".join(["a", "b"]).upper(): x, f"k{3}": x + 1, "%d" % 4: x + 2}  # noqa: UP031


@row()
def no_grad_block(x):
    with strata.no_grad():
        y = x * 2
    return y + x


@row()
def autocast_block(x):
    with strata.autocast("cpu", dtype=strata.bfloat16):
        y = strata.mm(x.view(2, 2), x.view(2, 2))
    return y


@row()
def context_manager_class(x):
    with Manager() as m:
        y = x + 1
    return y, m.log


@row()
def context_manager_function(x):
    with doubled([]) as box:
        y = x * box[0]
    return y, box


@row()
def try_except(x):
    try:
        TABLE["missing"]
    except KeyError as e:
        x = x + len(str(e))
    finally:
        x = x * 2
    return x


@row()
def raise_and_catch(x):
    def check(n):
        if n > 2:
            raise ValueError(f"too large: {n}")
        return n

    try:
        return x + check(3)
    except (TypeError, ValueError) as e:
        return x, str(e)


@row("it raises ValueError")
def raise_out(x):
    if x.shape[0] == 4:
        raise ValueError("four")
    return x


@row()
def assertion(x):
    assert x.shape[0] == 4, "four"
    return x + 1


@row()
def assertion_on_values(x):
    assert (x >= 0).all(), "none negative"
    return x + 1


@row()
def user_class(x):
    return Base(2)(x) + Derived(3)(x)


@row()
def property_and_class_methods(x):
    b = Base.make(3)
    return Base.plus(x) * b.double


@row()
def returned_object(x):
    p = Point(x * 2)
    return p.total(), p.y


@row()
def operators_of_a_class(x):
    v = Vector(x) + Vector(x * 2)
    return v.data, len(v), v[1], v == Vector(1)


@row()
def class_with_slots(x):
    s = Slots(x)
    s.a = s.a + 1
    return s.a


@row()
def data_class(x):
    return dataclasses.replace(Point(x), y=3).total() if False else Point(x, 3).total()


@row()
def frozen_data_class(x):
    f = Fixed(3)
    return x * f.a + f.b


@row()
def named_tuple(x):
    p = Pair(x, 2)
    return p._replace(second=3), p.first + p[1]


@row()
def enum_members(x):
    color = Color.RED
    return x + (1 if color is Color.RED else 2) + Color.BLUE.value + Color(1).value


@row()
def isinstance_checks(x):
    return x + 1 if isinstance(x, strata.Tensor) and not isinstance(3, (str, float)) else x


@row()
def loop_over_modules(x):
    return NET(x.view(1, 4))


@row()
def module_hooks(x):
    return HOOKED(x)


@row()
def dropout(x):
    strata_state = DROP(x)
    return strata_state.shape


@row(None, lambda: strata.arange(8.0).view(2, 4))
def batch_norm(x):
    return BATCH(x)


@row()
def parameters_of_a_module(x):
    return sum(p.sum() for p in NET.parameters()) + x
