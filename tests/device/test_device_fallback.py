"""A program's fallback for all operators of a plugin's device: strata.library.Library.fallback with the device's key."""

from __future__ import annotations

import devices
import pytest
import strata
from strata.library import Library

DEVICE = devices.null()
NAME = DEVICE.type


@pytest.fixture
def every():
    library = Library("_", "IMPL")
    yield library
    library._destroy()


def test_it_sees_operators_before_the_plugin_does(every):
    seen = []

    def count(op, *args, **kwargs):
        seen.append(op.name())
        return op(*args, **kwargs)

    x = strata.ones(3, device=DEVICE)
    every.fallback(count, NAME)
    assert (x + x).exp().cpu().tolist() == (strata.ones(3) * 2).exp().tolist()
    assert seen[:2] == ["aten::add.Tensor", "aten::exp"]
    assert "what serves all operators of the device, from " in strata.explain_dispatch(strata.ops.aten.exp.default, x)
    seen.clear()
    strata.ones(3).exp()
    assert not seen  # of another device
    every._destroy()
    x.exp()
    assert not seen


def test_kernels_come_before_it(every):
    local = Library("aten", "IMPL")
    local.impl("neg", lambda x: x + 7, NAME)
    every.fallback(lambda op, *args, **kwargs: op(*args, **kwargs) * 10 if op.name() in ("aten::neg", "aten::exp") else op(*args, **kwargs), NAME)
    x = strata.zeros(2, device=DEVICE)
    assert (-x).cpu().tolist() == [7, 7] and x.exp().cpu().tolist() == [10, 10]
    local._destroy()
    assert (-x).cpu().tolist() == [0, 0]


def test_derivatives_and_compiled_functions_go_on(every):
    seen = []

    def count(op, *args, **kwargs):
        seen.append(op.name())
        return op(*args, **kwargs)

    every.fallback(count, NAME)
    x = strata.full((3,), 2.0, device=DEVICE, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.cpu().tolist() == [4, 4, 4] and "aten::mul.Tensor" in seen
    compiled = strata.compile(lambda t: (t * 3).sin())
    assert compiled(x.detach()).cpu().tolist() == (strata.full((3,), 6.0)).sin().tolist()


def test_what_it_raises_comes_out(every):
    def refuse(op, *args, **kwargs):
        raise NotImplementedError(f"{op.name()} is not for this device")

    x = strata.ones(3, device=DEVICE)
    every.fallback(refuse, NAME.upper())
    with pytest.raises(NotImplementedError, match="aten::exp is not for this device"):
        x.exp()
    every._destroy()
    x.exp()
