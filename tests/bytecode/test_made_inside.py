"""What a captured function makes and uses up: generators that are sent to, counters, dicts that make what is missing, modules that
hold no tensors, and parameters of classes of one's own."""

import collections
import functools

import pytest
import strata
from both import same
from strata import nn


def t():
    return strata.arange(4.0)


def whole(*functions):
    """Each is one graph, and does what it does as it is."""

    def scenario(n):
        for f in functions:
            n.call(n.compile(f), t())

    assert not same(scenario)


def test_send():
    def echo(x):
        def g():
            given = yield x
            while given is not None:
                given = yield given * 2
            return "end"

        it = g()
        first, second, third = next(it), it.send(x + 1), it.send(x)
        try:
            it.send(None)
        except StopIteration as stop:
            return first, second, third, stop.value

    def too_early(x):
        def g():
            yield x

        try:
            g().send(x)
        except TypeError as error:
            return x, str(error)

    def through(x):
        def inner():
            given = yield 1
            return given * 3

        def outer():
            found = yield from inner()
            yield found + 1

        it = outer()
        return next(it), it.send(x)

    whole(echo, too_early, through)


def test_throw_and_close():
    def caught(x):
        def g():
            try:
                yield x
            except ValueError as error:
                x2 = x * len(str(error))
            yield x2

        it = g()
        next(it)
        return it.throw(ValueError("abc"))

    def passed_on(x):
        def g():
            yield x
            yield x + 1

        it = g()
        next(it)
        try:
            it.throw(KeyError)
        except KeyError:
            return x, next(it, "done")

    def closed(x):
        log = []

        def g():
            try:
                yield x
            finally:
                log.append("closed")

        it = g()
        first = next(it)
        it.close()
        it.close()
        return first, log, list(it)

    def never_begun(x):
        def g():
            yield x

        it = g()
        it.close()
        return x, list(it)

    def refuses(x):
        def g():
            while True:
                try:
                    yield x
                except GeneratorExit:
                    yield x + 1
                    return

        it = g()
        next(it)
        try:
            it.close()
        except RuntimeError as error:
            return x, str(error), list(it)

    whole(caught, passed_on, closed, never_begun, refuses)


def test_a_throw_into_a_generator_that_waits_for_another_breaks():
    def f(x):
        def inner():
            try:
                yield x
            except ValueError:
                yield x * 2

        def outer():
            yield from inner()

        it = outer()
        next(it)
        found = it.throw(ValueError())
        return found, list(it)

    assert same(lambda n: n.call(n.compile(f), t()))


def test_dicts_that_make_what_is_missing():
    outside = collections.defaultdict(lambda: 2.0, a=1.0)

    class Lengths(dict):
        def __missing__(self, key):
            self[key] = len(key)
            return self[key]

    lengths = Lengths(a=10)

    def lists(x):
        d = collections.defaultdict(list, {"k": [1]})
        d["a"].append(x)
        d["a"].append(x * 2)
        return d, d["none"], d.get("never"), "never" in d

    def functions(x):
        d = collections.defaultdict(lambda: x + 1)
        d["a"] += x
        return d["a"], d["b"], sorted(d)

    def from_outside(x):
        return x * outside["a"] + outside["b"]

    def without_factory(x):
        d = collections.defaultdict()
        d["a"] = x
        try:
            d["b"]
        except KeyError as error:
            return d["a"], str(error)

    def classes(x):
        return x * lengths["a"] + lengths["four"], lengths.get("five")

    def scenario(n):
        for f in (lists, functions, from_outside, without_factory, classes):
            n.call(n.compile(f), t())
        n.say(sorted(outside.items()), sorted(lengths.items()))
        outside.pop("b", None), lengths.pop("four", None)

    assert not same(scenario)


def test_counters():
    def counts(x):
        c = collections.Counter("abca")
        c.update(["b", "b"])
        c["d"] += 2
        c.subtract(a=1)
        return x * c["b"] + c["nothing"], sorted(c.items()), c.most_common(), sum(c.values()), list(c.elements())

    whole(counts)


def test_modules_without_tensors():
    weights = nn.Parameter(strata.ones(4))

    def activations(x):
        return nn.ReLU()(x) + nn.Softmax(dim=-1)(x) + nn.Dropout(0.5)(x) + nn.LeakyReLU(negative_slope=0.3)(x - 2)

    def losses(x):
        loss = nn.MSELoss(reduction="sum")
        return loss(x * weights, x) + nn.CrossEntropyLoss(label_smoothing=0.1)(x[None], strata.tensor([1]))

    def handed_out(x):
        act = nn.GELU()
        return act(x), act

    whole(activations, losses, handed_out)


def test_modules_with_parameters_break():
    def f(x):
        strata.manual_seed(0)
        return nn.Linear(4, 2)(x)

    assert same(lambda n: n.call(n.compile(f), t()))


def test_a_module_class_that_is_replaced_is_seen(monkeypatch):
    compiled = strata.compile(lambda x: nn.ReLU()(x - 1))
    compiled(t())
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: x * 7)
    assert strata.equal(compiled(t()), (t() - 1) * 7)


class Scale(nn.Parameter):
    def twice(self):
        return self * 2


@pytest.mark.parametrize("grad", [True, False])
def test_parameters_of_a_class_of_ones_own(grad):
    p = Scale(strata.arange(4.0), requires_grad=grad)

    def f(x):
        return (x * p + p.twice()).sum(), type(p).__name__

    compiled = strata.compile(f, fullgraph=True)
    found, want = compiled(t()), f(t())
    assert strata.equal(found[0], want[0]) and found[1] == "Scale"
    if grad:
        a, b = (strata.autograd.grad(v[0], p)[0] for v in (found, want))
        assert strata.equal(a, b)


def test_lists_of_modules_made_inside():
    def in_sequence(x):
        return nn.Sequential(nn.Sequential(nn.ReLU()), nn.Dropout(0.5)).eval()(x - 1)

    def in_a_loop(x):
        layers = nn.ModuleList([nn.Tanh()])
        layers.append(nn.GELU())
        for layer in layers:
            x = layer(x)
        return x, layers[0] is layers[-2], len(layers)

    def by_name(x):
        chosen = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        return chosen["relu"](x), list(chosen)

    def handed_out(x):
        made = nn.Sequential(nn.ReLU(), nn.Tanh())
        return made(x), len(made)

    whole(in_sequence, in_a_loop, by_name, handed_out)
    net = strata.compile(lambda x: nn.Sequential(nn.ReLU(), nn.Tanh()), fullgraph=True)(t())
    assert strata.equal(net(t()), t().relu().tanh())


def test_new_tensor_and_assert():
    def f(x):
        strata._assert(x.shape[0] == 4, "four are expected")
        return x.double() + x.new_tensor([1.0, 2.0, 3.0, 4.0]), x.new_tensor([1, 2], dtype=strata.int32), strata.finfo(x.dtype).eps

    whole(f)
    with pytest.raises(AssertionError, match="four are expected"):
        strata.compile(f)(strata.arange(3.0))


def test_decorators_inside():
    def deco(g):
        @functools.wraps(g)
        def wrapped(*args):
            return g(*args) * 2

        wrapped.tag = "seen"
        return wrapped

    def f(x):
        @deco
        def inner(v):
            """A text."""
            return v + 1

        return inner(x), inner.__name__, inner.__doc__, inner.tag, inner.__wrapped__(x)

    whole(f)
    made = strata.compile(lambda x: deco(f), fullgraph=True)(t())
    assert made.__name__ == "f" and made.__wrapped__ is f and made.tag == "seen" and made.__qualname__ == f.__qualname__


class Bag:
    def __init__(self, **given):
        self.__dict__.update(given)
        self.again = self.__dict__

    def __getattr__(self, name):
        raise AttributeError(name)


def test_the_dict_of_what_is_made_inside():
    def f(x):
        bag = Bag(a=x, b=2)
        bag.__dict__["c"] = x + 1
        return bag.a * bag.b + bag.c, "c" in bag.__dict__, sorted(bag.__dict__), bag.__dict__.get("d", 7), bag.again is bag.__dict__

    whole(f)
    bag = strata.compile(lambda x: Bag(a=x + 1), fullgraph=True)(t())
    bag.d = 3
    assert strata.equal(bag.a, t() + 1) and bag.again is bag.__dict__ and bag.__dict__["d"] == 3


class EqualByValue:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, EqualByValue) and self.n == other.n

    __hash__ = None


def test_comparisons_by_eq_alone():
    def f(x):
        a, b, c = EqualByValue(1), EqualByValue(1), EqualByValue(2)
        return x + 1, a != b, a != c, [a, c] == [b, c], (a,) != (c,), [a] == [a, b], a != 3

    whole(f)


def test_a_padded_encoder():
    enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()
    x, mask = strata.rand(2, 3, 4), strata.tensor([[0, 0, 1], [0, 1, 1]]).bool()
    with strata.no_grad():
        want = enc(x, src_key_padding_mask=mask)
        assert strata.equal(strata.compile(enc, fullgraph=True)(x, src_key_padding_mask=mask), want)
    assert (want == 0).all(-1).equal(mask)
