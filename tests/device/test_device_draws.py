"""Random numbers on a device: from its own generator, from one that is given, in the CPU's bits; on the null device."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import devices
import pytest
import strata

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control

P = strata.linspace(0, 1, 300).reshape(3, 100)


def filled(method, *args):
    return lambda t, g: getattr(strata.empty_like(t), method)(*args, generator=g)


DRAWS = {
    "uniform_": filled("uniform_", -1, 1),
    "normal_": filled("normal_"),
    "log_normal_": filled("log_normal_"),
    "exponential_": filled("exponential_"),
    "cauchy_": filled("cauchy_"),
    "geometric_": filled("geometric_", 0.3),
    "random_": filled("random_", 0, 99),
    "bernoulli_.float": filled("bernoulli_", 0.3),
    "bernoulli_.Tensor": lambda t, g: strata.empty_like(t).bernoulli_(t, generator=g),
    "bernoulli": lambda t, g: strata.bernoulli(t, generator=g),
    "bernoulli.p": lambda t, g: strata.bernoulli(t, 0.2, generator=g),
    "normal.Tensor_Tensor": lambda t, g: strata.normal(t, t + 1, generator=g),
    "normal.float_Tensor": lambda t, g: strata.normal(2.0, t, generator=g),
    "rand": lambda t, g: strata.rand(4, 7, generator=g, device=t.device),
    "randn": lambda t, g: strata.randn(4, 7, generator=g, device=t.device),
    "randint": lambda t, g: strata.randint(3, 50, (40,), generator=g, device=t.device),
    "randperm": lambda t, g: strata.randperm(50, generator=g, device=t.device),
    # By way of the CPU.
    "multinomial": lambda t, g: strata.multinomial(t + 0.1, 5, generator=g),
    "poisson": lambda t, g: strata.poisson(t * 9, generator=g),
    "binomial": lambda t, g: strata.binomial(t * 0 + 9, t, generator=g),
}


@pytest.mark.filterwarnings("ignore:The operator")
@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_the_device_goes_on_as_the_cpus_does(name):
    draw = DRAWS[name]
    own, there = strata.Generator().manual_seed(7), strata.Generator(device=DEVICE).manual_seed(7)
    untouched = strata.get_rng_state(), strata.null.get_rng_state()
    for _ in range(2):
        want, got = draw(P, own), draw(P.to(DEVICE), there)
        assert got.device.type == "null" and got.cpu().equal(want)
    assert there.get_state().equal(own.get_state())
    assert strata.get_rng_state().equal(untouched[0]) and strata.null.get_rng_state().equal(untouched[1])


@pytest.mark.filterwarnings("ignore:The operator")
@pytest.mark.parametrize("name", DRAWS)
def test_the_default_generator_of_the_device(name):
    draw = DRAWS[name]
    strata.manual_seed(3)
    want = [draw(P, None), draw(P, None), strata.rand(5)]
    strata.manual_seed(3)
    before = strata.get_rng_state()
    got = [draw(P.to(DEVICE), None), draw(P.to(DEVICE), None), strata.rand(5, device=DEVICE)]
    assert all(a.cpu().equal(b) for a, b in zip(got, want, strict=True))
    assert strata.get_rng_state().equal(before)


@pytest.mark.filterwarnings("ignore:The operator")
@pytest.mark.parametrize("own", [True, False])
def test_threads_never_draw_the_same_by_way_of_the_cpu(own):
    weights, generator = strata.ones(400, 2000), strata.Generator(device=DEVICE).manual_seed(5) if own else None
    there = weights.to(DEVICE)
    strata.manual_seed(5)

    def draws(_):
        return [tuple(strata.multinomial(there, 8, True, generator=generator).cpu().flatten()[:40].tolist()) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        drawn = [numbers for found in pool.map(draws, range(4)) for numbers in found]
    assert len(set(drawn)) == 20
    alone = strata.Generator().manual_seed(5)
    for _ in range(20):
        strata.multinomial(weights, 8, True, generator=alone)
    assert (generator.get_state() if own else strata.null.get_rng_state()).equal(alone.get_state())


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_of_another_device_is_refused(name):
    draw, other = DRAWS[name], strata.Generator()
    state = other.get_state()
    with pytest.raises(RuntimeError, match="Expected a 'null' device type for generator but found 'cpu'"):
        draw(P.to(DEVICE), other)
    assert other.get_state().equal(state)
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'null'"):
        draw(P, strata.Generator(device=DEVICE))


def test_probabilities_are_looked_at_on_the_device():
    strata.fallback.reset()
    there = P.to(DEVICE)
    strata.bernoulli(there)
    strata.empty_like(there).bernoulli_(there)
    strata.normal(0.0, there)
    assert not strata.fallback.rows()
    for wrong in (there + 0.5, there - 0.5, there * float("nan")):
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1"):
            strata.bernoulli(wrong)
    with pytest.raises(RuntimeError, match="std >= 0"):
        strata.normal(0.0, there - 0.5)
    x = strata.ones(3, 100, device=DEVICE)
    with pytest.raises(RuntimeError, match="Expected p_in"):
        x.bernoulli_(there + 0.5)
    assert x.cpu().equal(strata.ones(3, 100))


def test_what_failed_before_is_told_where_probabilities_are_waited_for():
    there, outside = P.to(DEVICE), strata.tensor([1, 900]).to(DEVICE)
    there[outside]
    with pytest.raises(IndexError, match="index 900|out of"):
        strata.bernoulli(there)
    assert CONTROL(b"fail_kernel", b"1") == 0
    with pytest.raises(RuntimeError, match="a kernel failed"):
        strata.bernoulli(there)
    assert strata.bernoulli(there * 0).sum().item() == 0


def test_in_a_compiled_graph():
    def f(p):
        return strata.bernoulli(p) * p + strata.rand_like(p)

    compiled = strata.graph(f, P.to(DEVICE)).compile()
    for _ in range(3):
        strata.manual_seed(9)
        want = [f(P), f(P)]
        strata.manual_seed(9)
        assert all(compiled(P.to(DEVICE)).cpu().equal(w) for w in want)
