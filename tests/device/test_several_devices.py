"""Operators and tensors of two devices of one plugin: what may be mixed, where results lie, the thread's current device."""

from __future__ import annotations

import devices
import pytest
import strata

DEVICE = devices.null()
FIRST, OTHER = strata.device("null", 0), strata.device("null", 1)

MIXES = {
    "add": lambda a, b: a + b,
    "lerp": lambda a, b: strata.lerp(a, a, b),
    "where": lambda a, b: strata.where(a > 0, a, b),
    "clamp": lambda a, b: strata.clamp(a, b, b),
    "equal": lambda a, b: strata.equal(a, b),
    "stack": lambda a, b: strata.stack([a, b]),
    "cat": lambda a, b: strata.cat([a.reshape(-1), b.reshape(-1)]),
    "add_": lambda a, b: a.add_(b),
    "fill_": lambda a, b: a.fill_(b.reshape(-1)[0]),
    "out": lambda a, b: strata.sin(a, out=b),
    "dot": lambda a, b: strata.dot(a.reshape(-1), b.reshape(-1)),
    "foreach": lambda a, b: strata._foreach_add([a], [b]),
    "svd": lambda a, b: strata.linalg.solve(a.reshape(-1)[:1].reshape(1, 1), b.reshape(-1)[:1].reshape(1, 1)),
}


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("name", MIXES)
def test_tensors_of_two_devices_do_not_mix(name, shape):
    a = strata.ones(shape, device=FIRST)
    for other in (strata.ones((), device=OTHER), strata.ones(shape, device=OTHER)):
        with pytest.raises(RuntimeError, match="at least two devices, null:[01] and null:[01]"):
            MIXES[name](a, other)
    assert a.cpu().equal(strata.ones(shape))


def test_numbers_of_the_cpu_mix():
    a, two = strata.ones(3, device=OTHER), strata.tensor(2.0)
    assert (a + two).cpu().tolist() == [3.0] * 3 and (two * a).device == OTHER
    assert a.clone().fill_(two).cpu().tolist() == [2.0] * 3 and strata.where(a > 0, two, a).cpu().tolist() == [2.0] * 3


def test_a_device_without_a_number_is_the_current_one():
    x = strata.arange(4.0, device=FIRST)
    assert x.to("null") is x
    with strata.accelerator.device_index(1):
        for y in (x.to("null"), x.to("null", strata.float64), x.to("null", non_blocking=True), strata.zeros_like(x, device="null")):
            assert y.device == OTHER
        assert strata.ones(2, device="null").device == OTHER and x.to("null:0") is x
        assert (x + 1).device == FIRST
    assert x.to("null") is x


def test_lists_on_two_devices_are_updated_each_where_it_is():
    params = [strata.ones(3, device=d, requires_grad=True) for d in (FIRST, OTHER, "cpu")]
    for make in (strata.optim.SGD, strata.optim.Adam):
        for p in params:
            p.grad = strata.ones_like(p)
        make(params, lr=0.5).step()
        strata.nn.utils.clip_grad_norm_(params[:2], 1.0)
    assert all(p.detach().cpu().equal(params[2].detach()) for p in params)
