"""strata.compile from end to end: results, gradients, effects and entries of a few small functions."""

import pytest
import strata
from strata import nn

COUNTER: list = []


def entries(compiled):
    c = compiled._strata_compiled
    return [e for table in (c.start, *c.tables.values()) for e in table.entries]


def both(f, *makers, calls=2):
    """The function and its compiled form on equal arguments: results and written arguments are equal."""
    compiled = strata.compile(f)
    for _ in range(calls):
        a, b = [m() for m in makers], [m() for m in makers]
        assert repr(f(*a)) == repr(compiled(*b))
        assert repr(a) == repr(b)
    return compiled


def test_squares_of_sine_and_cosine_have_no_gradient():
    def f(x):
        return strata.sin(x) ** 2 + strata.cos(x) ** 2

    compiled = strata.compile(f)
    x = strata.randn(100, requires_grad=True)
    y = compiled(x)
    y.sum().backward()
    assert strata.equal(y, f(x)) and bool((x.grad == 0).all())
    (entry,) = entries(compiled)
    assert entry.kind == "graph" and entry.stops is None
    assert "fused" in entry.graph.explain() or entry.graph.source().count("run_0(") >= 1


def test_a_module_keeps_its_attributes_and_parameters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.last(strata.relu(self.first(x)))

    net = Net()
    compiled = strata.compile(net)
    x = strata.randn(3, 4)
    for _ in range(2):
        net.zero_grad()
        net(x).sum().backward()
        want = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        y = compiled(x)
        y.sum().backward()
        assert strata.equal(y, net(x))
        assert all(strata.equal(a, p.grad) for a, p in zip(want, net.parameters(), strict=True))
    assert compiled._orig_mod is net and list(compiled.state_dict()) == ["_orig_mod." + k for k in net.state_dict()]
    assert compiled.eval() is compiled and not net.training and compiled.first is net.first


def test_an_int_decides():
    def f(x, n):
        return x + n if n > 2 else x - n

    compiled = both(f, lambda: strata.ones(3), lambda: 3)
    assert strata.equal(compiled(strata.ones(3), 1), strata.zeros(3)) and len(entries(compiled)) == 2


def test_a_print_of_a_tensor_breaks_and_goes_on(capsys):
    def f(x):
        y = x * 2
        print("y is", y)
        return y + 1

    compiled = both(f, lambda: strata.ones(2))
    first, rest = entries(compiled)
    assert first.stops.reason == "print of a tensor" and rest.stops is None
    assert capsys.readouterr().out == "y is tensor([2., 2.])\n" * 4


def test_lists_are_changed_at_each_call():
    def f(x, items):
        items.append(x * 2)
        COUNTER.append(len(items))
        return items[0] + 1

    COUNTER.clear()
    compiled = both(f, lambda: strata.ones(2), lambda: [strata.zeros(2)])
    assert COUNTER == [2, 2, 2, 2] and all(e.kind == "graph" for e in entries(compiled))


def test_a_whole_step_is_one_graph():
    def made():
        strata.manual_seed(3)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        return net, strata.optim.Adam(net.parameters(), lr=0.01)

    def run(compile):
        net, opt = made()

        def step(x):
            opt.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            opt.step()
            return loss.detach()

        f = compile(step)
        x = strata.ones(5, 4)
        return [f(x).item() for _ in range(5)], list(net.parameters()), f

    want, parameters, _ = run(lambda f: f)
    got, compiled_parameters, f = run(strata.compile)
    assert want == got and all(strata.equal(a, b) for a, b in zip(parameters, compiled_parameters, strict=True))
    assert any(e.stops is None and e.region is not None and e.region.step for e in entries(f))


def test_capture_has_no_effect():
    def f(x, items):
        x.add_(1)
        items.append(3)
        raise ValueError("after all")

    x = strata.zeros(2)
    compiled = strata.compile(f)
    for i in range(1, 3):
        items = []
        with pytest.raises(ValueError, match="after all"):
            compiled(x, items)
        assert items == [3] and x.tolist() == [i, i] and x._version == i


def test_fullgraph_raises_with_the_place():
    @strata.compile(fullgraph=True)
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match=r"(?s)a branch on a tensor's value.*where.*if x\.sum\(\) > 0.*\^"):
        f(strata.ones(2))


def test_options_are_checked():
    with pytest.raises(RuntimeError, match="Invalid backend: 'nobody'"):
        strata.compile(lambda x: x, backend="nobody")
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        strata.compile(lambda x: x, mode="fast")
    with pytest.raises(TypeError, match="expected a function or a module, got int"):
        strata.compile(3)
    f = lambda x: x  # noqa: E731
    assert strata.compile(f, disable=True) is f
