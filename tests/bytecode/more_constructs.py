"""More rows of the table of constructs: mutation, loops, calls back, tensors, what breaks."""

import collections
import functools
import math

import numpy
import strata
from constructs import NET, ROWS, SCALE, STATE, Base, Square, row, t  # noqa: F401
from strata import nn


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
