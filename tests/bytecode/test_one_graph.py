"""Constructs that programs of PyTorch's compiler have in one graph."""

import copy
import enum
import itertools
import operator
import types

import pytest
import strata
from both import in_one_graph, same
from strata import nn


def t(*numbers):
    return strata.tensor(numbers or (1.0, 2.0, 3.0))


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Parts(enum.IntFlag):
    SIGN = 1
    SIZE = 2


CALLS = [
    lambda x: x * Level.HIGH + Level.LOW - (Level.HIGH - 1),
    lambda x: x.view(1, 3).sum(Level.LOW) + x.view(1, 3).sum(dim=Level.LOW),
    lambda x: x * Parts.SIZE + Parts.SIGN,
    lambda x: operator.methodcaller("sum", 0)(x) + operator.methodcaller("sum", dim=0, keepdim=True)(x),
    lambda x: x * operator.attrgetter("shape")(x)[0],
    lambda x: sum(itertools.starmap(lambda a, b: a * b, [(x, 2), (x, 3)])),
    lambda x: x * sum(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])) + sum(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1])),
    lambda x: list(itertools.accumulate([x, x, x], lambda a, b: a + b)),
    lambda x: x * len(list(itertools.filterfalse(lambda v: v > 1, [1, 2]))),
    lambda x: x.type(strata.DoubleTensor) * isinstance(x, strata.FloatTensor) + isinstance(x.long(), strata.FloatTensor),
    lambda x: strata.tensor([x[0], x.sum()]) + strata.as_tensor((x[1], x[2])),
    lambda x: x[[0, -1]] * x.view(1, 3)[:, [2]].sum(),
    lambda x: strata.compile(strata.relu)(x) + strata.compile(lambda y: y * 2)(x),
]


@pytest.mark.parametrize("f", CALLS)
def test_calls_in_one_graph(f):
    in_one_graph(f, (t(),), (t(4.0, 5.0, 6.0),))


def test_weights_made_inside():
    def f(x):
        w = strata.empty(3, 3)
        nn.init.kaiming_uniform_(w, a=1)
        b = nn.init.constant_(strata.empty(3), 2.0)
        return x @ nn.init.xavier_normal_(w.clone()) + w + b

    def scenario(n):
        compiled = n.compile(f, fullgraph=True)
        for _ in range(3):
            n.call(compiled, t())
        n.say(strata.rand(2))

    assert same(scenario) == []


def test_what_is_read_through_containers():
    class Key:
        pass

    def scenario(n):
        layers, keys = [nn.Linear(3, 3), nn.Linear(3, 3)], [Key(), Key()]
        by_layer = {layers[0]: 2.0, layers[1]: 3.0}
        by_key = {keys[0]: 5.0, keys[1]: 7.0}
        shown = {"a": 2.0}
        proxy = types.MappingProxyType(shown)
        get = [operator.attrgetter("weight")]

        def f(x):
            for layer, factor in by_layer.items():
                x = layer(x) * factor * by_layer[layers[0]]
            return x * by_key[keys[1]] * proxy["a"] + get[0](layers[0])

        compiled = n.compile(f, fullgraph=True)
        n.call(compiled, t())
        by_layer[layers[0]] = 11.0
        n.call(compiled, t())
        by_layer[layers[0]] = by_layer.pop(layers[0])
        n.call(compiled, t())
        keys.reverse()
        n.call(compiled, t())
        shown["a"] = 13.0
        n.call(compiled, t())
        get[0] = operator.attrgetter("bias")
        n.call(compiled, t())
        layers[0] = nn.Linear(3, 3)
        by_layer[layers[0]] = 17.0
        n.call(compiled, t())

    same(scenario)


def test_deep_copies_of_numbers():
    held = {"sizes": [1, 2], "names": ("a",)}

    def f(x):
        mine = copy.deepcopy(held)
        mine["sizes"].append(3)
        return x * sum(mine["sizes"]), mine

    def scenario(n):
        compiled = n.compile(f, fullgraph=True)
        n.call(compiled, t())
        n.call(compiled, t())
        n.say(held)

    assert same(scenario) == []


def written(write):
    def f(x, i):
        y = x.clone()
        write(y, x, i)
        return y

    return f


PLACES = {
    "number": lambda y, x, i: y.__setitem__(i, 7),
    "argmax": lambda y, x, i: y.view(-1).__setitem__(y.argmax(), 5),
    "with a slice": lambda y, x, i: y.__setitem__((i, slice(1, 3)), strata.tensor([1.0, 2.0])),
    "column": lambda y, x, i: y.__setitem__((slice(None), i), y[:, 0] + 1),
    "two": lambda y, x, i: y.__setitem__((i, i), x.sum()),
    "with an index": lambda y, x, i: y.__setitem__((i, strata.tensor([0, 2])), 9.0),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_tensors_tell(name):
    def scenario(n):
        f = n.compile(written(PLACES[name]), fullgraph=True)
        x = strata.arange(12.0).view(3, 4)
        for place in (1, -1, 0, 2):
            n.call(f, x + place, strata.tensor(place))
        leaf, value = x.clone().requires_grad_(), strata.tensor(3.0, requires_grad=True)
        (f(leaf * value, strata.tensor(1)) ** 2).sum().backward()
        n.say(leaf.grad, value.grad)

    assert same(scenario) == []


def test_a_place_that_is_not_there():
    f = strata.compile(written(PLACES["number"]), fullgraph=True)
    with pytest.raises(IndexError, match="out of bounds"):
        f(strata.ones(3, 4), strata.tensor(3))


def test_questions_of_the_library_and_numbers_of_numpy_inside():
    numpy = pytest.importorskip("numpy")
    x = strata.ones(4)
    for f in (
        lambda x: x * 2 if strata.is_floating_point(x) and not strata.is_complex(x) else x * strata.numel(x),
        lambda x: x / numpy.sqrt(x.shape[-1]) + numpy.maximum(2, 3.5),
        lambda x: x[: int(numpy.ceil(2.5))] * numpy.log(numpy.exp(0.999) - 1),
    ):
        compiled = strata.compile(f, fullgraph=True)
        for n in (4, 5):
            assert compiled(strata.ones(n)).equal(f(strata.ones(n)))
    assert strata.compile(lambda x: x * numpy.float64(2) + numpy.arange(4).sum(), fullgraph=False)(x).equal(x * 2 + 6)


class Straight(strata.autograd.Function):
    """A sign whose gradient passes where the operand is small."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad = grad.clone()
        grad[x.abs() > 1] = 0
        grad[1:2] += 1
        return grad


class Counts(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x, told):
        told["calls"] = told.get("calls", 0) + 1
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def test_items_are_set_by_functions_with_a_gradient():
    x = strata.linspace(-2, 2, 6).requires_grad_()

    def f(x):
        return (Straight.apply(x) * x).sum()

    compiled = strata.compile(f, fullgraph=True)
    for _ in range(2):
        assert compiled(x).equal(f(x))
        assert strata.autograd.grad(compiled(x), x)[0].equal(strata.autograd.grad(f(x), x)[0])
    told = {}
    counted = strata.compile(lambda x, told: Counts.apply(x, told))  # of what it is given: it runs as it is
    for _ in range(3):
        assert counted(x, told).equal(x * 2)
    assert told == {"calls": 3}


def test_lists_as_indices_of_growing_tensors():
    """Each call makes the index anew: a graph is not for one object."""

    def last(x, before=None):
        x = x if before is None else strata.cat([before, x], 1)
        y = x.clone()
        y[[0]] = 1
        return x[:, [-1]] * 2 + y[0, [0]], x

    compiled = strata.compile(last, fullgraph=True)
    found, kept = compiled(strata.randn(1, 8, 4)), []
    for _ in range(14):
        new = strata.randn(1, 1, 4)
        before = found[1]
        found = compiled(new, before)
        kept.append(found)
        for a, b in zip(found, last(new, before), strict=True):
            assert strata.equal(a, b)
    assert len(compiled._strata_compiled.start.entries) <= 3


@pytest.mark.parametrize("make", [lambda: nn.BatchNorm1d(4), lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())])
@pytest.mark.parametrize("whole", [True, False])
def test_batch_norm_runs_twice_before_backward(make, whole):
    gradients = []
    for compiles in (False, True):
        strata.manual_seed(3)
        model = make()
        run = strata.compile(model, fullgraph=True) if compiles and whole else model
        f = strata.compile(lambda x, model=model: model(x), fullgraph=True) if compiles and not whole else run
        x = strata.randn(8, 4)
        (f(x) * f(x + 1)).sum().backward()
        gradients.append([t.tolist() for t in (*(p.grad for p in model.parameters()), *model.buffers())])
    assert gradients[0] == gradients[1]


def test_flags_of_arguments():
    def f(x, parts):
        return (-x if parts & Parts.SIGN else x) * (2 if parts & Parts.SIZE else 1)

    in_one_graph(f, *((t(), parts) for parts in (Parts.SIGN | Parts.SIZE, Parts.SIGN, Parts.SIZE, Parts(0))))
