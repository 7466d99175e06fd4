"""80 constructs of Python, and what becomes of each in strata.compile: captured whole, broken with a reason, or raised.

A row: name, function, makers of its arguments, and what is expected: None (one graph, no break), a text of the reason of
the first break, or an exception's text.
"""

import collections
import contextlib
import dataclasses
import enum
import functools
import math
import operator

import numpy
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


@row("a branch on a tensor's value")
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


@row()
def list_mutation(x):
    items = [1, 2, 3]
    items.append(x)
    items[0] = x * 2
    del items[1]
    items += [4]
    items.reverse()
    return items


@row(None, t, lambda: [1, [2]])
def argument_list_mutation(x, items):
    items[1].append(x)
    items.insert(0, items.pop())
    return len(items)


@row(None, t, lambda: {"a": 1, "b": [2]})
def argument_dict_mutation(x, d):
    d["c"] = x
    d["b"].append(3)
    d.pop("a")
    d.setdefault("e", x + 1)
    return list(d)


@row(None, t, lambda: {1, 2})
def set_mutation(x, s):
    s.add(5)
    s.discard(1)
    return x + len(s)


@row()
def collections_types(x):
    d = collections.defaultdict(list)
    d["k"].append(x)
    o = collections.OrderedDict(a=1)
    o["b"] = x
    q = collections.deque([1, 2])
    q.appendleft(x)
    return d, o, q


@row(None, t, lambda: Base(2))
def argument_attribute_mutation(x, obj):
    obj.n = obj.n + 1
    obj.kept = x * obj.n
    return obj.kept + 1


@row()
def global_mutation(x):
    STATE[0] += 1
    return x


@row()
def while_loop(x):
    n = 0
    while n < 3:
        x = x + n
        n += 1
    else:
        x = x * 2
    return x


@row()
def break_and_continue(x):
    for i in range(10):
        if i == 2:
            continue
        if i > 4:
            break
        x = x + i
    return x


@row()
def unpacking(x):
    a, b = x.view(2, 2)
    first, *rest = (x, 1, 2)
    (c, d), e = (3, 4), 5
    return a + b, rest, first * c + d + e


@row()
def walrus(x):
    if (n := x.shape[0]) > 3:
        return x + n
    return x


@row()
def lambdas(x):
    f = lambda a, b=2: a * b  # noqa: E731
    return f(x) + (lambda y: y + 1)(x)


@row()
def map_and_filter(x):
    return list(map(lambda v: x * v, filter(lambda v: v % 2, range(5))))


@row()
def sorted_with_key(x):
    return sorted([3, 1, 2], key=lambda v: -v), max([(1, "b"), (3, "a")], key=lambda p: p[1]), x


@row()
def zip_and_enumerate(x):
    return [x * i + a for i, (a, b) in enumerate(zip([1, 2], "ab", strict=True))]


@row()
def functools_reduce(x):
    return functools.reduce(lambda a, b: a * b, [x, x, 2])


@row()
def functools_wraps(x):
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return f(*args, **kwargs) * 2

        return wrapper

    return x * 2 if False else twice.__name__ and x


@row()
def numpy_scalars(x):
    return x * float(numpy.float64(2.5)) if False else x * 2.5


@row()
def custom_function(x):
    return Square.apply(x)


@row()
def tensor_attributes(x):
    return x.reshape(x.shape[0] // 2, -1), x.dtype == strata.float32, x.device.type, x.ndim, x.numel(), x.requires_grad


@row()
def tensor_methods(x):
    y = x.view(2, 2)
    y = y.t().contiguous().unsqueeze(0)
    return y.size(1), y.dim(), y.to(strata.float64), y.max(dim=-1)


@row()
def tensor_in_place(x):
    x.add_(1)
    x[0] = 5
    x[1:3] *= 2
    return x


@row()
def tensor_of_data(x):
    return x + strata.tensor([1.0, 2.0, 3.0, 4.0]), strata.zeros(2), strata.full((2,), SCALE)


@row()
def iteration_over_a_tensor(x):
    return [v * 2 for v in x]


@row("a branch on a tensor's value")
def data_dependent_if(x):
    if x.sum() > 3:
        return x + 1
    return x - 1


@row("item() reads a tensor's value")
def item_of_a_tensor(x):
    n = x.sum().item()
    return x + n


@row("tolist() reads a tensor's value")
def list_of_a_tensor(x):
    return [n + 1 for n in x.tolist()]


@row("the size of what nonzero gives depends on values")
def data_dependent_size(x):
    return x.nonzero()


@row()
def print_of_constants(x):
    print("shape", x.shape, 3)
    return x + 1


@row("print of a tensor")
def print_of_a_tensor(x):
    print(x)
    return x + 1


@row("the method random of a Random")
def random_numbers(x):
    import random

    return x + (random.random() > 2)


@row()
def random_tensors(x):
    return strata.randn(4).shape, strata.rand_like(x).dtype


@row()
def math_functions(x):
    return x * math.sqrt(16) + math.pi + round(2.7) + abs(-3) + divmod(7, 2)[1]


@row()
def chained_comparison(x):
    n = x.shape[0]
    return x + (1 if 1 < n <= 4 < 5 else 2) if n in (3, 4) and not n is None else x  # noqa: E714


@row()
def conditional_expression(x):
    return (x if x is not None else 0) + (SCALE or 1)


@row()
def slices(x):
    items = [x, x + 1, x + 2]
    return items[::-1], x[..., :2], x[[0, 2]], "abc"[1:], items[-1]


@row()
def returned_function(x):
    k = 3

    def f(y):
        return y * k + x

    return f(2)


@row()
def recursion(x):
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return x * fact(4)


@row()
def getattr_and_hasattr(x):
    b = Base(2)
    b.m = 4
    return x * getattr(b, "m") + getattr(b, "none", 1) + hasattr(b, "n")  # noqa: B009


exec(  # a statement of later versions than the oldest that the linter reads
    """
@row()
def match_statement(x):
    match x.shape[0]:
        case 4:
            return x + 4
        case _:
            return x
"""
)


@row()
def import_inside(x):
    import math as m

    return x * m.floor(2.5)


@row()
def any_and_all(x):
    return x + any(i > 2 for i in range(4)) + all([1, 0])


@row("locals")
def reads_locals(x):
    y = 1
    return x + locals()["y"]


@row("an import of")
def import_of_what_is_not_loaded(x):
    import this_is_not_there  # noqa: F401

    return x


@row()
def functional_library(x):
    return nn.functional.softmax(nn.functional.gelu(x), dim=0), strata.einsum("i,i->", x, x)


@row("a generator or a coroutine")
def generator_itself(x):
    yield x
    yield x + 1


@row("a Linear is made")
def module_made_inside(x):
    return nn.Linear(4, 4)(x).shape


@row("manual_seed")
def seed_inside(x):
    strata.manual_seed(3)
    return strata.rand(3) + x[:3]


@row()
def autograd_grad(x):
    y = x.detach().clone().requires_grad_()
    (g,) = strata.autograd.grad((y * y).sum(), y)
    return g


@row()
def deep_nesting(x):
    return {"a": [(x, {"b": (x + 1,)})], "c": None}
