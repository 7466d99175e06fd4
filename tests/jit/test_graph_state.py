"""What a captured graph assumes of optimisers, modules and modes: followed where it changed, or refused by name."""

from __future__ import annotations

import copy
import random

import pytest
import strata
from strata import nn

F = nn.functional


def step_of(model, optimiser):
    def step(x):
        optimiser.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimiser.step()
        return loss

    return step


def trained(compiled, make, change, steps=6):
    """Losses, parameters and state of steps, between which something is changed."""
    strata.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    optimiser = make(model)
    x = strata.randn(steps, 3, 4)
    step = step_of(model, optimiser)
    step(x[0])
    saved = copy.deepcopy(optimiser.state_dict())
    step(x[1])
    if compiled:
        step = strata.graph(step, x[0]).compile()
    found = []
    for i in range(steps):
        found.append(step(x[i]).detach())
        change(i, model, optimiser, saved)
    found += [v.detach().clone() for p in model.parameters() for v in (p, *optimiser.state[p].values()) if isinstance(v, strata.Tensor)]
    return found, [group["lr"] for group in optimiser.param_groups]


def resumed(i, model, optimiser, saved):
    for group in optimiser.param_groups:
        group["lr"] *= 0.5
    if i == 2:
        optimiser.load_state_dict(saved)


def count_replaced(i, model, optimiser, saved):
    if i == 1:
        optimiser.state[model[0].weight]["step"] = strata.tensor(100.0)
    if i == 3:
        optimiser.param_groups[0] = dict(optimiser.param_groups[0], lr=optimiser.param_groups[0]["lr"] * 3)
    if i == 4:
        optimiser.param_groups[0]["lr"] = optimiser.param_groups[0]["lr"] / 4


MAKERS = {
    "SGD": lambda m: strata.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "AdamW": lambda m: strata.optim.AdamW([{"params": m[0].parameters()}, {"params": m[2].parameters(), "lr": 0.02}], lr=0.01),
    "tensor": lambda m: strata.optim.Adam(m.parameters(), lr=strata.tensor(0.01)),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("change", [resumed, count_replaced])
def test_state_that_was_loaded_or_replaced_goes_on(name, change):
    if change is count_replaced and name == "SGD":
        return
    (eager, rates), (ours, now) = (trained(compiled, MAKERS[name], change) for compiled in (False, True))
    assert all(strata.equal(a, b) for a, b in zip(eager, ours, strict=True)) and rates == now


def test_state_that_does_not_fit_is_refused():
    model, x = nn.Linear(4, 2), strata.randn(3, 4)
    optimiser = strata.optim.Adam(model.parameters(), lr=0.01)
    optimiser.init_state()
    compiled = strata.graph(step_of(model, optimiser), x).compile()
    compiled(x)
    state = optimiser.state[model.bias]
    kept = state["exp_avg"]
    state["exp_avg"] = strata.zeros(3)
    with pytest.raises(RuntimeError, match="Adam's state 'exp_avg' of parameter 1 was replaced"):
        compiled(x)
    state["exp_avg"] = kept
    compiled(x)
    optimiser.add_param_group({"params": [nn.Parameter(strata.zeros(2))]})
    with pytest.raises(RuntimeError, match="groups had other parameters"):
        compiled(x)
    del optimiser.param_groups[1]
    compiled(x)
    optimiser.state.clear()
    with pytest.raises(RuntimeError, match="no state of its parameter 0"):
        compiled(x)


def test_a_schedule_inside_is_refused():
    model, x = nn.Linear(4, 2), strata.randn(3, 4)
    optimiser = strata.optim.SGD(model.parameters(), lr=0.1)
    schedule = strata.optim.lr_scheduler.ExponentialLR(optimiser, 0.5)
    plain = step_of(model, optimiser)

    def scheduled(x):
        plain(x)
        schedule.step()

    def by_hand(x):
        plain(x)
        optimiser.param_groups[0]["lr"] *= 0.5

    def raises(x):
        by_hand(x)
        raise KeyError("mine")

    for step, error in ((scheduled, RuntimeError), (by_hand, RuntimeError), (raises, KeyError)):
        text = "mine" if error is KeyError else r"SGD.param_groups\[0\]\['lr'\] is 0.1 before and 0.05 behind .* call the scheduler"
        with pytest.raises(error, match=text):
            strata.graph(step, x)
        assert optimiser.param_groups[0]["lr"] == 0.1 and schedule.last_epoch == 0
    held = strata.optim.SGD(model.parameters(), lr=strata.tensor(0.1))
    cosine, with_tensor = strata.optim.lr_scheduler.CosineAnnealingLR(held, 5), step_of(model, held)
    with pytest.raises(RuntimeError, match="CosineAnnealingLR was stepped, .* call it outside"):
        strata.graph(lambda x: (with_tensor(x), cosine.step()), x)
    assert cosine.last_epoch == 0 and held.param_groups[0]["lr"].item() == pytest.approx(0.1)
    compiled = strata.graph(plain, x).compile()
    before = model.weight.clone()
    compiled(x)
    once = before - model.weight
    schedule.step()
    with strata.no_grad():
        model.weight.copy_(before)
        model.bias.zero_()
    compiled(x)
    assert 0 < (before - model.weight).abs().sum() < once.abs().sum()


def test_other_generators_are_refused():
    x = strata.ones(3)
    with pytest.raises(RuntimeError, match="draws from random, .* strata.rand"):
        strata.graph(lambda x: x * random.random(), x)
    numpy = pytest.importorskip("numpy")
    with pytest.raises(RuntimeError, match="draws from numpy.random"):
        strata.graph(lambda x: x * float(numpy.random.rand()), x)
    strata.graph(lambda x: x * strata.rand(()), x)


class Keeps(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.calls = kind, 0
        self.register_buffer("mean", strata.ones(3))
        self.other = strata.ones(3)

    def forward(self, x):
        if self.kind == "in place":
            self.mean.mul_(0.5).add_(x, alpha=0.5)
            return x + self.mean
        if self.kind == "calls":
            self.calls += 1
        else:
            setattr(self, self.kind, getattr(self, self.kind, 0) * 0.5 + x)
        return x + self.mean


@pytest.mark.parametrize("kind", ["mean", "other", "new", "calls"])
@pytest.mark.parametrize("inner", [False, True])
def test_attributes_that_are_assigned_are_refused_and_put_back(kind, inner):
    module, x = Keeps(kind), strata.randn(3)
    before = dict(module.__dict__, mean=module.mean)
    name = f"0 .Keeps..{kind}" if inner else f"Keeps.{kind}"
    with pytest.raises(RuntimeError, match=name + " is .* behind the function"):
        strata.graph(nn.Sequential(module) if inner else module, x)
    assert all(a is b for a, b in zip(before.values(), {**module.__dict__, "mean": module.mean}.values(), strict=True))
    module.kind = "in place"
    eager = copy.deepcopy(module)
    compiled = strata.graph(module, x).compile()
    assert all(strata.equal(compiled(x), eager(x)) for _ in range(2)) and strata.equal(module.mean, eager.mean)


def test_variables_that_are_assigned_are_refused_and_put_back():
    h = kept = strata.zeros(3)

    def recurrent(x):
        nonlocal h
        h = h * 0.5 + x
        return h

    with pytest.raises(RuntimeError, match="h is another tensor behind the function"):
        strata.graph(recurrent, kept)
    assert h is kept


def test_weights_that_hooks_compute_stay_with_the_hooks():
    layer, x = nn.utils.weight_norm(nn.Linear(3, 2)), strata.randn(4, 3)
    compiled = strata.graph(layer, x).compile()
    assert strata.equal(compiled(x), layer(x)) and layer.weight.sum().item() is not None


def test_modes_that_the_function_asked_for_are_guarded():
    def asks(x):
        return x * 2 if strata.is_grad_enabled() else x * 3

    own, x = strata.is_grad_enabled, strata.ones(3)
    compiled, plain = strata.graph(asks, x).compile(), strata.graph(nn.Linear(3, 3), x).compile()
    assert strata.is_grad_enabled is own
    compiled(x)
    with strata.no_grad():
        plain(x)
        with pytest.raises(RuntimeError, match=r"asked for is_grad_enabled\(\), which was True .* and is False"):
            compiled(x)
        assert strata.graph(asks, x).compile()(x).tolist() == [3.0] * 3
    compiled = strata.graph(lambda x: x * 2 if strata.are_deterministic_algorithms_enabled() else x, x).compile()
    strata.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="are_deterministic_algorithms_enabled"):
            compiled(x)
    finally:
        strata.use_deterministic_algorithms(False)
    assert compiled(x).tolist() == [1.0] * 3


class Sized(nn.Module):
    scale = 2

    def forward(self, x):
        self.size = x.shape[0]
        return x * self.scale


@pytest.mark.parametrize("name, value", [("p", 0.25), ("inplace", True), ("eps", 0.5), ("momentum", 0.5), ("training", False)])
def test_numbers_of_modules_are_guarded(name, value):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.LayerNorm(4), nn.BatchNorm1d(4), Sized())
    at = {"p": 1, "inplace": 1, "eps": 2, "momentum": 3, "training": 3}[name]
    x = strata.randn(3, 4)
    graph = strata.graph(lambda x: model(x), x)
    compiled = graph.compile()
    then = getattr(model[at], name)
    model(strata.randn(5, 4))
    model.note = 3
    compiled(x)
    setattr(model[at], name, value)
    for call in (compiled, compiled, graph, lambda x: graph.run(x, fetch="%1")):
        with pytest.raises(RuntimeError, match=rf"model.{at} .{type(model[at]).__name__}..{name} was {then} .*, and is {value}"):
            call(x)
    setattr(model[at], name, then)
    compiled(x)


def assigned(model):
    model.load_state_dict(model.state_dict(), assign=True)


def appended(model):
    model.append(nn.ReLU())


CHANGES = {
    "parameter": (lambda m: setattr(m[0], "weight", nn.Parameter(m[0].weight.detach() * 2)), "model.0 .Linear..weight was a tensor .* another"),
    "assign": (assigned, "model.0 .Linear..weight was a tensor .* another tensor; write it in place"),
    "module": (lambda m: m.__setitem__(1, nn.ReLU()), "model .Sequential..1 was Tanh .* ReLU"),
    "append": (appended, "model .Sequential. had other modules"),
    "no bias": (lambda m: setattr(m[0], "bias", None), "model.0 .Linear..bias was a tensor .* None"),
    "buffer": (lambda m: setattr(m[2], "running_mean", strata.zeros(4)), "model.2 .BatchNorm1d..running_mean was a tensor"),
    "hook": (lambda m: m[1].register_forward_hook(lambda module, args, y: y * 2), "model.1 .Tanh. had other hooks .forward_hooks."),
    "frozen": (lambda m: m[0].weight.requires_grad_(False), "model.0.weight required a gradient .* requires none"),
    "learns": (lambda m: m[3].bias.requires_grad_(True), "model.3.bias required no gradient .* requires one"),
    "tensor hook": (lambda m: m[0].weight.register_hook(lambda g: g * 2), "model.0.weight had other hooks"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("whole", [False, True])
def test_members_and_hooks_of_modules_are_guarded(name, whole):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Linear(4, 1)), strata.randn(3, 4)
    model[3].bias.requires_grad_(False)
    optimiser = strata.optim.SGD(model.parameters(), lr=0.1)
    compiled = strata.graph(step_of(model, optimiser) if whole else lambda x: model(x), x).compile()
    compiled(x)
    model.to("cpu").eval().train()
    compiled(x)
    change, text = CHANGES[name]
    change(model)
    if not whole and name in ("frozen", "tensor hook"):  # what is differentiated from outside asks its inputs then
        compiled(x).sum().backward()
        assert (model[0].weight.grad is None) == (name == "frozen")
        return
    for _ in range(2):
        with pytest.raises(RuntimeError, match=text if whole or name != "learns" else "requires a gradient, and did not"):
            compiled(x)


def test_hooks_of_optimisers_are_guarded():
    model, x = nn.Linear(4, 2), strata.randn(3, 4)
    optimiser = strata.optim.SGD(model.parameters(), lr=0.1)
    compiled = strata.graph(step_of(model, optimiser), x).compile()
    compiled(x)
    everywhere = strata.optim.optimizer.register_optimizer_step_pre_hook
    for register in (optimiser.register_step_post_hook, everywhere):
        with register(lambda *_: None), pytest.raises(RuntimeError, match="SGD had other hooks"):
            compiled(x)
        compiled(x)


def test_hooks_that_were_captured_are_guarded():
    model, x = nn.Linear(4, 2), strata.randn(3, 4)
    handle = model.weight.register_hook(lambda g: g * 0.5)
    compiled = strata.graph(step_of(model, strata.optim.SGD(model.parameters(), lr=0.1)), x).compile()
    compiled(x)
    compiled(x)
    handle.remove()
    with pytest.raises(RuntimeError, match="model.weight had other hooks"):
        compiled(x)


def test_the_default_dtype_stays():
    before, x, own = strata.get_default_dtype(), strata.ones(3), strata.set_default_dtype

    def there_and_back(x):
        strata.set_default_dtype(strata.float64)
        strata.set_default_dtype(before)
        return x + strata.ones(3)

    def left(x):
        own(strata.float64)
        return x + strata.ones(3)

    for f, text in ((there_and_back, "set_default_dtype: cannot be called .* give dtype="), (left, "default dtype is strata.float64 behind")):
        with pytest.raises(RuntimeError, match=text):
            strata.graph(f, x)
        assert strata.get_default_dtype() is before and strata.set_default_dtype is own
    strata.graph(lambda x: strata.set_default_dtype(before) or x + 1, x)


def seeds(x):
    strata.manual_seed(3)
    return x + strata.rand(3)


def sets(x):
    x.set_(strata.ones(3))
    return x


def nests(x):
    return strata.graph(lambda x: x + 1, x)(x)


def sets_dtype(x):
    strata.set_default_dtype(strata.float64)


def reads(x):
    return x.item()


@pytest.mark.parametrize("f", [seeds, sets, nests, sets_dtype, reads])
def test_what_is_refused_names_the_line(f):
    line = f"{__file__}:{f.__code__.co_firstlineno + 1} in {f.__name__}"
    with pytest.raises(RuntimeError) as raised:
        strata.graph(f, strata.ones(()) if f is reads else strata.ones(3))
    assert str(raised.value).count(line) == 1


def test_the_cache_explains_what_compile_gave():
    x, f = strata.ones(300), strata.compile(lambda x: (x + 1).sin() * 0.7)
    assert "call it before" in strata.cache.explain(f)
    f(x)
    assert "kernel 0 (aten::add.Scalar, aten::sin, aten::mul.Scalar): " in strata.cache.explain(f)
    fast = strata.compile(lambda x: (x + 1).sin() * 0.7, options={"numerics": "fast"})
    fast(x.bfloat16())
    assert 'numerics="fast"): ' in strata.cache.explain(fast)
    module = strata.compile(nn.Sequential(nn.Tanh(), nn.ReLU()))
    module(x)
    assert "kernel 0 (aten::tanh, aten::relu): " in strata.cache.explain(module)
    for other in (3, strata.graph(lambda x: x + 1, x), nn.Linear(3, 3), abs):
        with pytest.raises(TypeError, match="expected what strata.compile or a graph's compile"):
            strata.cache.explain(other)


def test_nodes_of_another_graph_are_no_values():
    x = strata.ones(3)
    one, other = strata.graph(lambda x: x + 1, x), strata.graph(lambda x: x * 2, x)
    assert one.run(x, fetch=one.nodes[-1]).tolist() == [2.0] * 3
    for asked in ({"fetch": other.nodes[-1]}, {"fetch": [one.nodes[-1], other.nodes[-1]]}, {"feed": {other.nodes[-1]: x}}):
        with pytest.raises(ValueError, match="%1.*aten::mul.* is a node of another graph"):
            one.run(x, **asked)


def test_generators_are_no_results():
    for f in (lambda x: (y for y in (x, x)), lambda x: [x, iter((x, x))]):
        with pytest.raises(TypeError, match="returns a (generator|tuple_iterator), whose items"):
            strata.graph(f, strata.ones(3))


@pytest.mark.parametrize("damage", [b"", b"\0" * 8])
def test_damaged_weights_are_said_to_be(tmp_path, damage):
    path = tmp_path / "linear"
    strata.graph(nn.Linear(3, 2), strata.ones(1, 3)).save(path)
    (tmp_path / "linear.weights").write_bytes(damage)
    with pytest.raises(RuntimeError, match="load_graph: .*linear.weights is damaged") as raised:
        strata.load_graph(path)
    assert type(raised.value) is RuntimeError


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
        self.optimiser = strata.optim.SGD(self.model.parameters(), lr=0.1)
        self.unused = nn.Dropout(0.5)

    def loss(self, x):
        return self.model(x).square().mean()

    def step(self, x):
        self.optimiser.zero_grad()
        loss = self.loss(x)
        loss.backward()
        self.optimiser.step()
        return loss


def test_modules_of_objects_lists_and_functions_within_are_in_reach():
    trainer, x = Trainer(), strata.randn(3, 4)
    listed, inner, many = nn.Dropout(0.5), nn.Dropout(0.5), {}
    many["a"] = listed

    def within(x):
        return (lambda x: inner(x))(x)

    def f(x):
        return within(many["a"](x))

    graph = strata.graph(trainer.step, x)
    assert "self.model.0.weight" in graph.captured
    compiled, other = graph.compile(), strata.graph(f, x).compile()
    trainer.unused.p = 0.1
    compiled(x), other(x)
    trainer.model.eval()
    with pytest.raises(RuntimeError, match="self.model .Sequential..training was True"):
        compiled(x)
    for module, name in ((inner, "inner"), (listed, "many..a..")):
        module.p = 0.1
        with pytest.raises(RuntimeError, match=name + " .Dropout..p was 0.5"):
            other(x)
        module.p = 0.5
    other(x)
