"""What is compiled is called by what is compiled; stances, limits, modes of __torch_function__."""

import copy

import pytest
import strata
from both import same
from strata import nn
from strata._dynamo import config


def t():
    return strata.arange(3.0)


def test_compiled_functions_and_modules_are_captured():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.k = nn.Linear(3, 3), 2

        def forward(self, x, n=1):
            self.k += 1
            return self.lin(x) * self.k + n

    class Holder:
        n = 1

        def go(self, x):
            self.n += 1
            return x * self.n

    def scenario(n):
        strata.manual_seed(0)
        net, held = Net(), Holder()
        inner, go, double = strata.compile(net), strata.compile(held.go), strata.compile(lambda x: x * 2)

        def f(x):
            inner.k = inner.k + 1
            return double(go(inner(x, n=3))), inner.training, inner.lin.weight.shape

        g = n.compile(f)
        n.call(g, t()), n.call(g, t())
        net.eval(), setattr(held, "n", 10)
        n.call(g, t())
        net.lin = nn.Linear(3, 3, bias=False)
        n.call(g, t())
        handle = net.register_forward_hook(lambda m, i, o: o * 2)
        n.call(g, t())
        handle.remove()
        n.call(g, t())
        n.say(net.k, held.n)

    assert not same(scenario)


def entries(f):
    c = f._strata_compiled
    return sum(len(table.entries) for table in (c.start, *c.tables.values()))


def test_stances():
    f = strata.compile(lambda x: x + 1)
    with strata.compiler.set_stance("force_eager"):
        f(t())
    assert entries(f) == 0
    with strata.compiler.set_stance("eager_then_compile"):
        f(t())
        assert entries(f) == 0
        f(t())
    assert entries(f) == 1

    @strata.compiler.set_stance("force_eager")
    def calls():
        return f(strata.ones(5))

    assert calls().tolist() == [2] * 5 and entries(f) == 1
    f(strata.ones(5, dtype=strata.int64))
    assert entries(f) == 2
    with pytest.raises(NotImplementedError, match="set_stance: force_backend"):
        strata.compiler.set_stance("default", force_backend="eager")


def test_limits(monkeypatch):
    def f(x, n):
        return x + n

    monkeypatch.setattr(config, "recompile_limit", 2)
    g = strata.compile(f)
    with pytest.warns(UserWarning, match=r"recompile limit \(2\) of .*Last reason: arg1: expected 1, actual 2"):
        assert [g(t(), n)[0].item() for n in range(4)] == [0, 1, 2, 3]
    assert entries(g) == 2 and config.cache_size_limit == 2
    monkeypatch.setattr(config, "accumulated_cache_size_limit", 4)
    others = [strata.compile(f) for _ in range(3)]
    with pytest.warns(UserWarning, match=r"accumulated recompile limit \(4\) of"):
        assert [h(t(), 5)[0].item() for h in others] == [5] * 3
    assert [entries(h) for h in others] == [1, 1, 0]


def test_modes_of_torch_function_see_all():
    from strata.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, f, types, args=(), kwargs=None):
            seen.append(getattr(f, "__name__", ""))
            return f(*args, **(kwargs or {}))

    f, seen = strata.compile(lambda x: x.sin() + 1), []
    x = t()
    f(x)
    with Mode():
        f(x)
    assert seen == ["sin", "add"]


def test_a_stance_is_not_set_inside_of_what_is_compiled():
    @strata.compile
    def block(x):
        with strata.compiler.set_stance("force_eager"):
            return x + 1

    @strata.compiler.set_stance("force_eager")
    def inner(x):
        return x + 1

    @strata.compile
    def outer(x):
        return inner(x) * 2

    x = strata.ones(2)
    for f, name in ((block, "set_stance"), (outer, "inner")):
        with pytest.raises(AssertionError, match=f"(?s)Attempt to trace forbidden callable .*{name}.*test_compiled_inside.py"):
            f(x)
    with strata.compiler.set_stance("force_eager"):
        assert block(x).tolist() == [2.0, 2.0]
    assert inner(x).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("first", [True, False])
def test_hooks_of_the_compiled_module_itself(first):
    compiled, x = strata.compile(nn.Identity()), strata.ones(2)
    if first:
        compiled(x)
    handle = compiled.register_forward_hook(lambda module, args, out: out * 2)
    pre = compiled.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    assert compiled(x).tolist() == [6.0, 6.0] and strata.compile(lambda t: compiled(t) + 1)(x).tolist() == [7.0, 7.0]
    handle.remove()
    pre.remove()
    outer = strata.compile(lambda t: compiled(t) + 1)
    assert compiled(x).tolist() == [1.0, 1.0] and outer(x).tolist() == [2.0, 2.0]
    compiled.register_forward_hook(lambda module, args, out: out * 5)
    assert outer(x).tolist() == [6.0, 6.0]


def test_one_graph_is_not_left_beyond_the_limit(monkeypatch):
    from strata._dynamo.exc import FailOnRecompileLimitHit

    monkeypatch.setattr(config, "recompile_limit", 2)
    compiled = strata.compile(lambda x, name: x + len(name), fullgraph=True)
    for name in ("a", "bb"):
        compiled(strata.ones(1), name)
    for name in ("ccc", "dddd"):
        with pytest.raises(FailOnRecompileLimitHit, match="recompile limit"):
            compiled(strata.ones(1), name)
    assert compiled(strata.ones(1), "a").item() == 2


def test_compiled_functions_are_copied_as_functions_are(capsys):
    net = nn.Linear(2, 2)
    net.forward = strata.compile(net.forward)
    assert copy.deepcopy(net).forward is net.forward

    def f(x):
        print(end="z")
        print("a", end="b")
        return x + 1

    compiled = strata.compile(f)
    assert copy.copy(compiled) is compiled and compiled(strata.ones(1)).item() == 2 and capsys.readouterr().out == "zab"


def test_a_compiled_function_under_checkpoint_and_saved_hooks():
    """What the first call traces is not saved for a backward: its hooks see what is computed, then as later."""
    from strata.utils.checkpoint import checkpoint

    x = strata.randn(4, 4, requires_grad=True)
    for reentrant in (False, True):
        cf = strata.compile(lambda x: (x @ x).tanh())
        for _ in range(2):
            y = checkpoint(cf, x, use_reentrant=reentrant)
            x.grad = None
            y.sum().backward()
            got, x.grad = x.grad, None
            (x @ x).tanh().sum().backward()
            assert got.equal(x.grad)
    for compiled in (strata.compile(lambda x: (x * x).exp()), strata.graph(lambda x: (x * x).exp(), x).compile()):
        counts = []
        for _ in range(3):
            packed = []
            with strata.autograd.graph.saved_tensors_hooks(lambda t, packed=packed: packed.append(t.is_meta) or t, lambda t: t):
                compiled(x)
            assert not any(packed)
            counts.append(len(packed))
        assert len(set(counts)) == 1
