"""GradScaler: unscaling, skipped steps, growth and backoff, state."""

import copy
import math
import pickle

import pytest
import strata
from strata.amp import GradScaler


@pytest.fixture
def setup():
    p = strata.nn.Parameter(strata.tensor([1.0, 2.0]))
    return p, strata.optim.SGD([p], lr=0.5)


def scaler(**options):
    return GradScaler("cpu", **{"init_scale": 8.0, "growth_interval": 2, **options})


def iteration(s, p, optimizer, factor=1.0):
    optimizer.zero_grad()
    s.scale((p * factor).sum()).backward()
    result = s.step(optimizer)
    s.update()
    return result


def test_a_step_is_that_of_the_unscaled_loss(setup):
    p, optimizer = setup
    s = scaler()
    iteration(s, p, optimizer, 3.0)
    assert p.tolist() == [-0.5, 0.5] and p.grad.tolist() == [3.0, 3.0]


def test_overflow_skips_the_step_and_halves_the_scale(setup):
    p, optimizer = setup
    s = scaler()
    for bad in (math.inf, -math.inf, math.nan):
        before = s.get_scale()
        iteration(s, p, optimizer, bad)
        assert p.tolist() == [1.0, 2.0] and s.get_scale() == before * 0.5


def test_growth_after_the_interval(setup):
    p, optimizer = setup
    s = scaler()
    scales = []
    for factor in (1.0, 1.0, 1.0, math.inf, 1.0, 1.0, 1.0):
        iteration(s, p, optimizer, factor)
        scales.append(s.get_scale())
    assert scales == [8.0, 16.0, 16.0, 8.0, 8.0, 16.0, 16.0]


def test_unscale_by_hand_and_order_of_calls(setup):
    p, optimizer = setup
    s = scaler()
    s.scale(p.sum()).backward()
    assert p.grad.tolist() == [8.0, 8.0]
    s.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        s.unscale_(optimizer)
    s.step(optimizer)
    assert p.tolist() == [0.5, 1.5]
    with pytest.raises(RuntimeError, match="after step"):
        s.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        s.step(optimizer)
    s.update()


def test_two_optimizers(setup):
    p, first = setup
    q = strata.nn.Parameter(strata.ones(1))
    second = strata.optim.SGD([q], lr=1.0)
    s = scaler()
    s.scale([p.sum(), (q * math.inf).sum()])
    a, b = s.scale((p.sum(), (q * math.inf).sum()))
    a.backward()
    b.backward()
    s.step(first)
    s.step(second)
    s.update()
    assert p.tolist() == [0.5, 1.5] and q.tolist() == [1.0] and s.get_scale() == 4.0


def test_optimizer_that_unscales_itself(setup):
    p, _ = setup
    seen = []

    class Fused(strata.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item(), p.grad.tolist()))

    optimizer = Fused([p], lr=0.1)
    s = scaler()
    iteration(s, p, optimizer)
    assert seen == [(8.0, 0.0, [8.0, 8.0])] and not hasattr(optimizer, "grad_scale")


def test_new_scale(setup):
    p = setup[0]
    s = scaler()
    s.scale(p.sum())
    s.update(4.0)
    assert s.get_scale() == 4.0
    s.update(strata.tensor([2.0]))
    assert s.get_scale() == 2.0
    with pytest.raises(AssertionError, match="new_scale must be"):
        s.update(strata.ones(2))


def test_state(setup):
    p, optimizer = setup
    s = scaler()
    iteration(s, p, optimizer)
    state = s.state_dict()
    assert state == {
        "scale": 8.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2,
        "_growth_tracker": 1,
    }
    fresh = GradScaler("cpu")
    fresh.load_state_dict(state)
    for other in (fresh, pickle.loads(pickle.dumps(s)), copy.copy(s)):
        iteration(other, p, optimizer)
        assert other.get_scale() == 16.0
    s.load_state_dict(state)
    assert s.state_dict() == state
    with pytest.raises(RuntimeError, match="state dict is empty"):
        s.load_state_dict({})


def test_disabled(setup):
    p, optimizer = setup
    s = scaler(enabled=False)
    assert s.scale(p) is p and s.get_scale() == 1.0 and s.state_dict() == {} and not s.is_enabled()
    iteration(s, p, optimizer)
    assert p.tolist() == [0.5, 1.5]


def test_default_device_is_one_that_is_there(setup):
    p, optimizer = setup
    if not strata.accelerator.is_available():
        s = GradScaler()
        iteration(s, p, optimizer)
        assert s.is_enabled() and s.get_scale() == 2.0**16
    with pytest.warns(UserWarning, match="no elsewhere device"):
        assert not GradScaler("elsewhere").is_enabled()


def test_refusals(setup):
    p, optimizer = setup
    with pytest.raises(AssertionError, match="growth factor"):
        scaler(growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        scaler(backoff_factor=1.0)
    s = scaler()
    with pytest.raises(AssertionError, match=r"call scaler.scale"):
        s.step(optimizer)
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        s.scale(3)
    s.scale(p.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        s.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        s.step(optimizer, closure=lambda: 0)
    half = strata.nn.Parameter(strata.ones(2, dtype=strata.float16))
    half.grad = strata.ones(2, dtype=strata.float16)
    with pytest.raises(ValueError, match="FP16 gradients"):
        s.unscale_(strata.optim.SGD([half], lr=0.1))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_optimisers_whose_kernels_unscale(name):
    """fused=True leaves gradients to the kernel, which skips a step of infinite ones without counting it."""

    def trained(scaler, overflow):
        p = strata.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimiser = getattr(strata.optim, name)([p], lr=0.1, fused=True)
        for k in range(3):
            optimiser.zero_grad()
            broken = overflow and k == 1
            if broken and not scaler.is_enabled():
                continue
            scaler.scale((p * p * (float("inf") if broken else 1)).sum()).backward()
            scaler.step(optimiser)
            scaler.update()
        return [p.detach(), *(t for t in optimiser.state[p].values() if isinstance(t, strata.Tensor))]

    for overflow in (False, True):
        plain = trained(strata.amp.GradScaler("cpu", enabled=False), overflow)
        scaled = trained(strata.amp.GradScaler("cpu", init_scale=8.0), overflow)
        assert all(strata.equal(a, b) for a, b in zip(plain, scaled, strict=True))
