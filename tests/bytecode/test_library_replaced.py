"""What strata's own functions call is seen when it is replaced after a capture, and when it is put back."""

import pytest
import strata
import strata.nn.functional as F
from strata import nn, optim


def scaled(original):
    return lambda *args, **kwargs: original(*args, **kwargs) * 3


def scaled_first(original):
    def call(*args, **kwargs):
        first, *rest = original(*args, **kwargs)
        return (first * 3, *rest)

    return call


def make():
    strata.manual_seed(0)
    linear = nn.Linear(4, 4)
    attention, lstm = nn.MultiheadAttention(4, 2, batch_first=True), nn.LSTM(4, 4)
    chain, loss = nn.Sequential(linear, nn.GELU(), nn.LayerNorm(4)), nn.MSELoss()
    return {
        "a function below a module": (lambda x: linear(x), F, "linear", scaled),
        "a module's forward": (lambda x: linear(x), nn.Linear, "forward", scaled),
        "below a chain of modules": (lambda x: chain(x), F, "layer_norm", scaled),
        "how modules are called": (lambda x: chain(x), nn.Module, "__call__", scaled),
        "a function that the program calls": (lambda x: F.relu(x), F, "relu", scaled),
        "an operator": (lambda x: strata.relu(x), strata, "relu", scaled),
        "an operator below a function": (lambda x: F.gelu(x), strata, "gelu", scaled),
        "a method": (lambda x: x.mul(2), strata.Tensor, "mul", scaled),
        "a method of Python": (lambda x: x.norm(dim=0), strata.Tensor, "norm", scaled),
        "Python's operator": (lambda x: x + 1, strata.Tensor, "__add__", scaled),
        "a reflected operator": (lambda x: 1 - x, strata.Tensor, "__rsub__", scaled),
        "attention": (lambda x: attention(x, x, x)[0], F, "multi_head_attention_forward", scaled_first),
        "a recurrent layer": (lambda x: lstm(x)[0], nn.LSTM, "forward", scaled_first),
        "a loss": (lambda x: loss(x, x * 2), F, "mse_loss", scaled),
    }


@pytest.mark.parametrize("name", make())
def test_a_replaced_function_is_seen(name, monkeypatch):
    f, owner, attribute, change = make()[name]
    x = strata.randn(2, 3, 4)
    compiled, before = strata.compile(f), f(x)
    assert strata.equal(compiled(x), before)
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, change(getattr(owner, attribute)))
        now = f(x)
        assert strata.equal(compiled(x), now)
    assert strata.equal(compiled(x), before)


def test_a_subclass_that_gets_a_method_of_its_own(monkeypatch):
    chain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled, x = strata.compile(lambda x: chain(x)), strata.randn(2, 4)
    compiled(x)
    monkeypatch.setattr(nn.ReLU, "__call__", lambda self, x: x * 5, raising=False)
    assert strata.equal(compiled(x), chain(x))


def test_a_replaced_function_is_seen_by_all_sizes(monkeypatch):
    linear = nn.Linear(4, 4)
    compiled = strata.compile(lambda x: linear(x))
    for n in (2, 3, 4, 5):
        compiled(strata.ones(n, 4))
    monkeypatch.setattr(F, "linear", scaled(F.linear))
    for n in (3, 4, 6):
        assert strata.equal(compiled(strata.ones(n, 4)), linear(strata.ones(n, 4)))


def test_a_replaced_step_of_an_optimiser_is_seen(monkeypatch):
    def run(call):
        p = nn.Parameter(strata.ones(3))
        optimizer = optim.SGD([p], lr=0.1)

        def step():
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

        step = call(step)
        step()
        step()
        plain = optim.SGD.step
        with monkeypatch.context() as patch:
            patch.setattr(optim.SGD, "step", lambda self: (plain(self), plain(self)) and None)
            step()
        step()
        return p.detach()

    assert strata.equal(run(strata.compile), run(lambda f: f))


def test_what_a_function_reads_that_is_unrelated_makes_no_entry():
    linear = nn.Linear(4, 4)
    compiled, x = strata.compile(lambda x: linear(x)), strata.ones(2, 4)
    compiled(x)
    F.something_new = strata.something_new = 1
    try:
        compiled(x)
    finally:
        del F.something_new, strata.something_new
    compiled(x)
    assert len(compiled._strata_compiled.start.entries) == 1


def test_a_profiler_of_the_program_goes_on(monkeypatch):
    import cProfile

    chain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    profile = cProfile.Profile()
    profile.enable()
    strata.compile(lambda x: chain(x))(strata.ones(2, 4))
    marker = sum(map(abs, [1, -1]))
    profile.disable()
    names = {entry.code if isinstance(entry.code, str) else entry.code.co_name for entry in profile.getstats()}
    assert marker == 2 and any("sum" in name for name in names) and "forward" in names


def test_modes_see_the_operators_of_what_was_captured():
    from strata.utils._python_dispatch import TorchDispatchMode

    class Doubles(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {})) * 2

    f = lambda x: x.sin() + 1  # noqa: E731
    compiled, x = strata.compile(f), strata.ones(3)
    compiled(x)
    with Doubles():
        want, found = f(x), compiled(x)
    assert strata.equal(want, found) and strata.equal(compiled(x), f(x))
    with strata.device("meta"):
        assert strata.compile(lambda: strata.ones(2) + 1)().is_meta
