"""FakeTensors that say that they are on a device: which operators take two devices; on the null device."""

from __future__ import annotations

import devices
import pytest
import strata
from strata._subclasses.fake_tensor import FakeTensor, FakeTensorMode

DEVICE = devices.null()
THERE = strata.device(DEVICE.type, 0)

ALLOWED = {
    "to the device": (lambda c, g, i: g.copy_(c), THERE),
    "from the device": (lambda c, g, i: c.copy_(g), "cpu"),
    "to": (lambda c, g, i: c.to(g.device), THERE),
    "to a tensor's": (lambda c, g, i: c.to(g), THERE),
    "cpu": (lambda c, g, i: g.cpu(), "cpu"),
    "an index": (lambda c, g, i: g[i], THERE),
    "an index of the device": (lambda c, g, i: c[i.to(g.device)], "cpu"),
    "a write": (lambda c, g, i: g.index_put_((i,), g[:2]), THERE),
    "a part": (lambda c, g, i: g.slice_scatter(c[:2], 0, 0, 2), THERE),
    "sizes": (lambda c, g, i: g.resize_as_(c.new_empty(5)), THERE),
    "a number": (lambda c, g, i: g + c.sum(), THERE),
    "itself": (lambda c, g, i: g.copy_(g), THERE),
}
REFUSED = {
    "sum": lambda c, g, i: c + g,
    "in place": lambda c, g, i: g.add_(c),
    "a number in place": lambda c, g, i: c.sum().add_(g.sum()),
    "out": lambda c, g, i: strata.add(c, c, out=g),
    "values": lambda c, g, i: g.index_put_((i,), c[:2]),
    "index_select": lambda c, g, i: g.index_select(0, i),
    "cat": lambda c, g, i: strata.cat([c, g]),
}


def operands():
    return strata.ones(3), strata.ones(3, device=DEVICE), strata.tensor([0, 2])


@pytest.mark.parametrize("name", ALLOWED)
def test_operators_of_two_devices(name):
    call, device = ALLOWED[name]
    with FakeTensorMode():
        found = call(*operands())
    assert type(found) is FakeTensor and found.device == strata.device(device)


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(name):
    with FakeTensorMode(), pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        REFUSED[name](*operands())


def test_what_is_made_there():
    with FakeTensorMode() as mode:
        x = strata.ones(4, 3, device=DEVICE)
        assert x[1:, ::2].device == x.data.device == strata.tensor([1.0], device=DEVICE).device == THERE
        with DEVICE:
            assert strata.tensor(2).device == THERE and strata.nn.Linear(2, 2).weight.device == THERE
    assert mode.from_tensor(strata.ones(2, device=DEVICE)).device == THERE
