"""load(map_location="meta"): shapes, strides and dtypes of what was saved, without its data."""

from __future__ import annotations

import io

import pytest
import strata
from strata import nn


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("location", ["meta", strata.device("meta")])
def test_a_checkpoint_has_shapes_alone(tmp_path, in_memory, location):
    net = nn.Linear(3, 2).double()
    shared = strata.ones(4, 5, dtype=strata.int16).t()
    saved = {"net": net.state_dict(), "list": [shared, (shared, 3)], "epoch": 7}
    f = io.BytesIO() if in_memory else tmp_path / "c.pt"
    strata.save(saved, f)
    if in_memory:
        f.seek(0)
    found = strata.load(f, map_location=location)
    assert found["epoch"] == 7 and list(found["net"]) == ["weight", "bias"] and type(found["net"]) is type(saved["net"])
    a, (b, three) = found["list"]
    assert a.is_meta and b.is_meta and three == 3 and a.shape == (5, 4) and a.stride() == (1, 5) and a.dtype == strata.int16
    with strata.device("meta"):
        empty = nn.Linear(3, 2)
    empty.load_state_dict(found["net"], assign=True)
    assert empty.weight.is_meta and empty.weight.dtype == strata.float64 and empty.weight.shape == (2, 3)


def test_parameters_and_modules(tmp_path):
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    strata.save({"p": net[0].weight, "q": net[0].weight}, tmp_path / "p.pt")
    found = strata.load(tmp_path / "p.pt", map_location="meta")
    assert isinstance(found["p"], nn.Parameter) and found["p"].requires_grad and found["p"] is found["q"]
    strata.save(net, tmp_path / "m.pt")
    assert all(p.is_meta for p in strata.load(tmp_path / "m.pt", map_location="meta", weights_only=False).parameters())
