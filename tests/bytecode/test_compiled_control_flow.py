"""cond and while_loop inside of what is compiled; modules and optimisers that are made there."""

import pytest
import strata
from both import same
from strata import nn


def t(*numbers):
    return strata.tensor(numbers or (1.0, 2.0, 3.0))


def captured(f, *calls):
    """One graph each, without a break, with eager's results."""
    compiled = strata.compile(f, fullgraph=True)
    for args in calls:
        want, got = f(*args), compiled(*args)
        assert strata.equal(want, got) and want.requires_grad == got.requires_grad
    return compiled


SCALE, WEIGHT = 2.0, strata.full((3,), 0.5)


def test_both_branches_are_in_the_graph():
    def f(x):
        return strata.cond(x.sum() > 0, lambda v: v.sin() * SCALE, lambda v: v.cos() - WEIGHT, (x,)) + 1

    compiled = captured(f, (t(),), (-t(),), (t(),))
    assert len(compiled._strata_compiled.start.entries) == 1
    assert "if" in str(compiled._strata_compiled.start.entries[0].region)


def test_what_branches_read_is_guarded():
    def scenario(n):
        space = {"strata": strata, "k": 2}
        exec("def f(x):\n return strata.cond(x.sum() > 0, lambda v: v * k, lambda v: v + k, (x,))", space)
        f = n.compile(space["f"])
        for k, x in ((2, t()), (3, t()), (3, -t()), (4, -t())):
            space["k"] = k
            n.call(f, x)

    assert same(scenario) == []


def test_other_sizes_and_names():
    def f(x):
        return strata.ops.higher_order.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,)) * x.shape[0]

    captured(f, (t(1.0, 2.0),), (t(1.0, -9.0, 2.0),), (t(1.0, 2.0, 3.0, 4.0),))


def test_a_loop_of_tensors():
    def f(x, most):
        _, y = strata.while_loop(lambda i, v: i < most, lambda i, v: (i + 1, v * 2 + 0.5), (strata.zeros((), dtype=strata.int64), x))
        return y

    captured(f, *((t(), strata.tensor(k)) for k in (0, 3, 5)))


def test_gradients_of_branches_that_use_the_same():
    layer = nn.Linear(3, 3)

    def f(x):
        return strata.cond(x.sum() > 0, lambda v: layer(v).sin(), lambda v: layer(v) * 2, (x,))

    compiled = captured(f, (t(),), (-t(),))
    for x in (t(), -t()):
        grads = []
        for g in (f, compiled):
            layer.zero_grad()
            g(x).sum().backward()
            grads.append(layer.weight.grad.clone())
        assert strata.equal(*grads)


def test_gradients_of_different_tensors_break():
    weight = strata.ones(3, requires_grad=True)

    def scenario(n):
        f = n.compile(lambda x: strata.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v * weight, (x,)))
        for x in (t(), -t(), t()):
            n.call(f, x)

    assert "gradients of different tensors" in same(scenario)[0]


@pytest.mark.parametrize("effect", ["print('a')", "kept.append(1)", "box.n = 2"])
def test_effects_of_branches_break(effect):
    def scenario(n):
        class Box:
            n = 1

        space = {"strata": strata, "kept": [], "box": Box()}
        exec(f"def g(v):\n {effect}\n return v * 2\ndef f(x):\n return strata.cond(x.sum() > 0, g, lambda v: v, (x,)) * len(kept) + box.n", space)
        f = n.compile(space["f"])
        for x in (t(), -t(), t()):
            n.call(f, x)
            n.say(space["kept"], vars(space["box"]))

    assert "has effects" in same(scenario)[0]


def test_random_numbers_of_branches():
    def scenario(n):
        f = n.compile(lambda x: (strata.cond(x.sum() > 0, lambda v: v * strata.rand(3), lambda v: v * 2, (x,)), strata.rand(1)))
        for x in (t(), -t(), t()):
            n.call(f, x)

    same(scenario)


def test_a_condition_that_is_no_tensor():
    def f(x, flag):
        return strata.cond(flag, lambda v: v + 1, lambda v: v - 1, (x,))

    captured(f, (t(), True), (t(), False))


def test_modules_that_are_made_inside_take_no_entry_each():
    def f(x):
        return nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.BatchNorm1d(2))(x)

    compiled = strata.compile(f)
    for seed in range(12):
        found = []
        for g in (f, compiled):
            strata.manual_seed(seed)
            found.append(g(strata.randn(4, 3)))
        assert strata.equal(*found)
    c = compiled._strata_compiled
    assert max(len(table.entries) for table in (c.start, *c.tables.values())) < 5
    assert c.breaks[0].reason == "a Linear is made"


def test_one_entry_for_many_modules():
    compiled, layers = strata.compile(lambda layer, x: layer(x)), [nn.Linear(3, 3) for _ in range(12)]
    for layer in layers:
        assert strata.equal(compiled(layer, t()), layer(t()))
    assert len(compiled._strata_compiled.start.entries) == 2


def test_optimisers_that_are_made_inside():
    def f(x):
        strata.manual_seed(0)
        layer = nn.Linear(3, 1)
        optimizer = strata.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = layer(x).pow(2).sum()
            loss.backward()
            optimizer.step()
        return loss.detach()

    compiled = strata.compile(f)
    for k in range(12):
        assert strata.equal(compiled(t() * k), f(t() * k))
    c = compiled._strata_compiled
    assert max(len(table.entries) for table in (c.start, *c.tables.values())) < 5


def test_classes_of_tensors_are_asked():
    seen = []

    class Logged(strata.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    class Wrapped:
        def __init__(self, held):
            self.held = held

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls(func(*(a.held if isinstance(a, cls) else a for a in args), **(kwargs or {})))

    compiled = strata.compile(lambda x, y: x * 2 + y.sin())
    for x, y in ((t().as_subclass(Logged), t()), (t(), t().as_subclass(Logged)), (t(), t())):
        logged = isinstance(x, Logged) or isinstance(y, Logged)
        seen.clear()
        assert strata.equal(compiled(x, y).as_subclass(strata.Tensor), (t() * 2 + t().sin()))
        assert (type(compiled(x, y)) is Logged) == bool(seen) == logged
    wrapped = strata.compile(lambda x: strata.add(x, 1))
    for _ in range(2):
        assert strata.equal(wrapped(Wrapped(t())).held, t() + 1)
    assert not compiled._strata_compiled.breaks
