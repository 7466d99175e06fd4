"""Fallbacks of a device: Library.fallback with its key, for operators that have no kernel there."""

import pytest
import strata as torch
from strata.library import Library


def test_a_device_takes_a_fallback():
    """It serves operators that have no kernel there, for as long as the library lasts; on a plugin's device: tests/device."""
    local, every = Library("fallbacktest", "DEF"), Library("_", "IMPL")
    local.define("twice(Tensor x, *, int n=1) -> Tensor")
    local.define("sized(Tensor x) -> Tensor")
    local.impl("sized", lambda x: x + 100, "CPU")
    seen = []

    def serve(op, x, **kwargs):
        seen.append(op.name())
        return x * 2 * kwargs.get("n", 1)

    every.fallback(serve, "CPU")
    x = torch.ones(2)
    assert torch.ops.fallbacktest.twice(x).tolist() == [2, 2] and torch.ops.fallbacktest.twice(x, n=3).tolist() == [6, 6]
    assert torch.ops.fallbacktest.sized(x).tolist() == [101, 101] and (x + x).tolist() == [2, 2]
    assert seen == ["fallbacktest::twice"] * 2
    assert "what serves all operators of the device, from " in torch.explain_dispatch(torch.ops.fallbacktest.twice.default, x)
    with pytest.raises(NotImplementedError, match="Could not run 'fallbacktest::twice' .* 'meta'"):
        torch.ops.fallbacktest.twice(x.to("meta"))
    every._destroy()
    with pytest.raises(NotImplementedError, match="fallbacktest::twice"):
        torch.ops.fallbacktest.twice(x)


@pytest.mark.parametrize("key", ["Meta", "meta", "CompositeExplicitAutograd", "Autograd", "Python"])
def test_keys_that_take_no_fallback(key):
    with pytest.raises(ValueError, match=f"the key {key} takes no fallback; use a device's, Autocast"):
        Library("_", "IMPL").fallback(lambda op, *args: None, key)
