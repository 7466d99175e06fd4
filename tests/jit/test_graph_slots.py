"""Numbers of optimisers in captured steps: each call reads anew what the groups hold then."""

from __future__ import annotations

import pytest
import strata

F = strata.nn.functional


def trained(name, options, change, compiled, steps=20):
    strata.manual_seed(3)
    model = strata.nn.Sequential(strata.nn.Linear(6, 8), strata.nn.Tanh(), strata.nn.Dropout(0.2), strata.nn.Linear(8, 3))
    body, bias = [p for n, p in model.named_parameters() if "weight" in n], [p for n, p in model.named_parameters() if "bias" in n]
    optimiser = getattr(strata.optim, name)([{"params": body}, {"params": bias, "lr": 0.02}], lr=0.05, **options)
    optimiser.init_state()
    tell = change(optimiser)
    x, y = strata.randn(steps, 5, 6), strata.randint(0, 3, (steps, 5))

    def step(x, y):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        strata.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        return loss

    if compiled:
        kept = {k: v.clone() for k, v in model.state_dict().items()}
        state = [{k: v.clone() for k, v in s.items() if v is not None} for s in optimiser.state.values()]
        seed = strata.default_generator.get_state()
        step = strata.graph(step, x[0], y[0]).compile()
        model.load_state_dict(kept)
        with strata.no_grad():
            for s, before in zip(optimiser.state.values(), state, strict=True):
                for k, v in before.items():
                    s[k].copy_(v)
        strata.default_generator.set_state(seed)
    losses = []
    for i in range(steps):
        losses.append(step(x[i], y[i]).detach().clone())
        tell(i)
    tensors = [v for s in optimiser.state.values() for v in s.values() if v is not None]
    return [*losses, *model.parameters(), *(p.grad for p in model.parameters()), *tensors, strata.default_generator.get_state()]


def one_cycle(optimiser):
    schedule = strata.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=[0.1, 0.2], total_steps=25)
    return lambda i: schedule.step()


def by_hand(optimiser):
    def change(i):
        for k, group in enumerate(optimiser.param_groups):
            for name in ("weight_decay", "eps", "alpha", "dampening", "rho", "lr_decay", "momentum_decay"):
                if isinstance(group.get(name), float):
                    group[name] = group[name] * 0.9 + 1e-4 * k
            if "betas" in group:
                group["betas"] = (0.9 - i / 100, 0.99 - i / 1000)

    return change


@pytest.mark.parametrize("change", [one_cycle, by_hand], ids=["one cycle", "by hand"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.01}),
        ("Adam", {"weight_decay": 0.02, "amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"momentum": 0.5}),
        ("NAdam", {"weight_decay": 0.01}),
        ("RAdam", {"weight_decay": 0.01}),
        ("Adamax", {"weight_decay": 0.01}),
    ],
)
def test_every_number_is_read_anew(name, options, change):
    eager, compiled = (trained(name, options, change, how) for how in (False, True))
    assert len(eager) == len(compiled)
    assert [strata.equal(a, b) for a, b in zip(eager, compiled, strict=True)] == [True] * len(eager)


def captured(name="AdamW", **options):
    w = strata.randn(3, requires_grad=True)
    optimiser = getattr(strata.optim, name)([w], lr=0.1, **options)
    optimiser.init_state()

    def step(x):
        optimiser.zero_grad()
        (x * w).sum().backward()
        optimiser.step()

    return w, optimiser, strata.graph(step, strata.ones(3))


def test_slots_have_names():
    _, optimiser, g = captured(weight_decay=0.1)
    slots = {n: t.item() for n, t in g.captured.items() if n.endswith(" 0")}
    assert slots == {"lr 0": 0.1, "beta1 0": 0.9, "beta2 0": 0.999, "weight_decay 0": 0.1, "eps 0": 1e-8}
    assert "beta1=%" in str(g)
    optimiser.param_groups[0]["betas"] = (0.5, 0.6)
    g.compile()(strata.ones(3))
    assert g.captured["beta1 0"].item() == 0.5 and g.captured["beta2 0"].item() == 0.6


def test_saved_steps_keep_their_numbers(tmp_path):
    w, optimiser, g = captured(weight_decay=0.1)
    g.save(tmp_path / "g")
    h = strata.load_graph(tmp_path / "g")
    optimiser.param_groups[0]["betas"] = (0.5, 0.6)
    with strata.no_grad():
        h.captured["beta1 0"].fill_(0.5)
        h.captured["beta2 0"].fill_(0.6)
    cf, of = h.compile(), g.compile()
    for _ in range(3):
        cf(strata.ones(3)), of(strata.ones(3))
    assert strata.equal(h.captured["w"], w)


def test_numbers_that_make_another_step_are_refused():
    _, optimiser, g = captured("SGD", momentum=0.9)
    optimiser.param_groups[0]["momentum"] = 0.0
    with pytest.raises(RuntimeError, match="momentum was 0.9 when the graph was captured, and is 0.0; a step with momentum is another"):
        g.compile()(strata.ones(3))
    _, optimiser, g = captured()
    optimiser.param_groups[0]["maximize"] = True
    with pytest.raises(RuntimeError, match="AdamW's maximize was False when the graph was captured, and is True"):
        g.compile()(strata.ones(3))
    _, optimiser, g = captured("Rprop")
    optimiser.param_groups[0]["etas"] = (0.4, 1.3)
    with pytest.raises(RuntimeError, match="Rprop's etas was"):
        g.compile()(strata.ones(3))


def test_texts_with_slots():
    text = str(captured()[2])
    op = next(line for line in text.splitlines() if "_fused_adamw_" in line)
    assert "f64[] 'beta1 0'" in text and "eps=%" in op
    wrong = text.replace("f64[] 'beta1 0'", "f32[] 'beta1 0'")
    tensors = list(captured()[2].captured.values())
    with pytest.raises(ValueError, match="argument 'beta1': expected float, got"):
        at = next(i for i, t in enumerate(tensors) if t.dtype == strata.float64 and t.item() == 0.9)
        tensors[at] = tensors[at].float()
        strata._C._graph_parse(wrong, tensors)
