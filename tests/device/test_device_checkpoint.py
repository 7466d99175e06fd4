"""Checkpointed regions whose tensors are on a device: the second run draws what the first drew there; on the null device."""

from __future__ import annotations

import functools

import devices
import pytest
import strata
from strata.nn.functional import dropout
from strata.utils.checkpoint import (
    checkpoint,
    create_selective_checkpoint_contexts,
    get_device_states,
    set_device_states,
)

DEVICE = devices.null()


def on(number, *sizes):
    return strata.ones(*sizes or (64,), device=strata.device(DEVICE.type, number), requires_grad=True)


REGIONS = {
    "positional": lambda x: checkpoint(lambda a: dropout(a, 0.5) * a, x, use_reentrant=False),
    "tuple": lambda x: checkpoint(lambda n: dropout(n[0][0], 0.5) * n[0][0], ((x,), None), use_reentrant=False),
    "list": lambda x: checkpoint(lambda n: dropout(n[1], 0.5) * n[1], [3, x], use_reentrant=False),
    "dict": lambda x: checkpoint(lambda n: dropout(n["x"], 0.5) * n["x"], {"x": x}, use_reentrant=False),
    "keyword": lambda x: checkpoint(lambda *, a: dropout(a, 0.5) * a, a=x, use_reentrant=False),
    "reentrant": lambda x: checkpoint(lambda a: dropout(a, 0.5) * a, x, use_reentrant=True),
}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("region", REGIONS)
def test_dropout_leaves_out_the_same_twice(region, number):
    x = on(number)
    y = REGIONS[region](x)
    module = strata.get_device_module(DEVICE)
    before = module.get_rng_state_all()
    y.sum().backward()
    assert strata.equal(x.grad.cpu(), 2 * y.detach().cpu()) and 0 < y.count_nonzero().item() < 64
    assert all(map(strata.equal, before, module.get_rng_state_all()))


def test_kept_draws_are_followed_by_the_same_ones():
    def region(a):
        return dropout(a, 0.5) * strata.rand_like(a) * dropout(a.exp(), 0.5)

    def gradient(**options):
        x = on(1)
        strata.manual_seed(3)
        checkpoint(region, x, use_reentrant=False, **options).sum().backward()
        return x.grad.cpu()

    for ops in ([strata.ops.aten.dropout.default], [strata.ops.aten.rand_like.default]):
        kept = functools.partial(create_selective_checkpoint_contexts, ops)
        assert strata.equal(gradient(), gradient(context_fn=kept))


def test_the_default_device_is_that_of_the_first_run():
    seen = []

    def region(a):
        noise = strata.rand(64)
        seen.append((noise.device, noise.cpu()))
        return a * noise

    x = on(0)
    with DEVICE:
        y = checkpoint(region, x, use_reentrant=False)
    y.sum().backward()
    assert seen[0][0] == seen[1][0] == x.device and strata.equal(seen[0][1], seen[1][1])
    assert strata.equal(x.grad, y.detach())


def test_states_of_devices():
    a, b, here = on(1), on(0), strata.ones(2)
    devices_, states = get_device_states(here, {"a": [a]}, (b, a, None), 3)
    assert devices_ == [1, 0]
    first = strata.rand(4, device=a.device), strata.rand(4, device=b.device)
    set_device_states(devices_, states, device_type=DEVICE.type)
    again = strata.rand(4, device=a.device), strata.rand(4, device=b.device)
    assert all(map(strata.equal, first, again))
    set_device_states(devices_, states)
    assert strata.equal(strata.rand(4, device=a.device), first[0])
    set_device_states(devices_, states, device_type="meta")
    assert get_device_states(here, strata.ones(2, device="meta")) == ([], [])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        set_device_states([0], [])
