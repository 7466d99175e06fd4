"""strata.debug.dump and report: what is wrong on the null device is ranked first, whatever runs after it."""

from __future__ import annotations

import ctypes
import json
import warnings

import devices
import pytest
import strata
from strata.testing._device.whole import Net

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control


def step(device):
    """A forward and backward pass and an optimiser's step."""
    strata.manual_seed(1)
    net, x = Net(), strata.randn(8, 12).to(device)
    net.to(device)
    optimizer = strata.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(x).square().sum().backward()
    optimizer.step()


def rows(folder):
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    CONTROL(b"flip_bit", b"0")


def test_nothing_differs_where_nothing_is_wrong(tmp_path):
    step(DEVICE)
    with strata.debug.dump(tmp_path, compare="cpu"):
        step(DEVICE)
        strata.randn(4, device=DEVICE).uniform_()
    text = strata.debug.report(tmp_path)
    assert text.splitlines()[0].endswith("0 differ"), text
    found = rows(tmp_path)
    names = [r["op"] for r in found]
    assert {"aten::linear", "aten::gelu", "aten::gelu_backward", "aten::native_dropout_backward"} <= set(names)
    gelu = found[names.index("aten::gelu")]
    assert gelu["inputs"] == ["float32[8, 16]"] and "test_debug.py:" in gelu["line"] and gelu["device"] == "null:0"
    assert gelu["statistics"][0]["nan"] == 0 and gelu["statistics"][0]["min"] >= -0.2


@pytest.mark.parametrize("wrong", ["gelu", "gelu_backward", "_fused_sgd_", "native_layer_norm_backward", "square"])
def test_a_wrong_kernel_is_ranked_first(tmp_path, wrong):
    """Also one that writes its operand."""
    op = strata._C._op_get(f"aten::{wrong}")

    def planted(*args, **kwargs):
        made = op(*args, **kwargs)
        first = args[0][0] if op._schema.is_mutable else made[0] if isinstance(made, tuple) else made
        first.flatten()[:1].mul_(1.001)
        return made

    with warnings.catch_warnings(), strata.library.override(op, planted, "null"), strata.debug.dump(tmp_path, compare="cpu"):
        step(DEVICE)
    text = strata.debug.report(tmp_path)
    assert f"aten::{wrong}" in text.splitlines()[2], text
    assert sum("error" in r and r["error"] > 0 for r in rows(tmp_path)) == 1


@pytest.mark.parametrize("call", [lambda x: x.mul_(3), lambda x: x * 3, lambda x: strata.add(x, 1, out=strata.empty(8, device=DEVICE)), lambda x: x.cumsum(0)])
def test_a_flipped_bit_is_ranked_first(tmp_path, call):
    x = strata.arange(1.0, 9.0, device=DEVICE)
    call(x.clone())
    with strata.debug.dump(tmp_path, compare="cpu"):
        y = x.sqrt()
        z = y.clone()
        CONTROL(b"flip_bit", b"1")
        call(z)
        (z + y).exp().sum()
    first = strata.debug.report(tmp_path).splitlines()
    assert first[0].endswith("1 differ") and "1 elements differ" in first[2], first
    assert any(name in first[2] for name in ("mul", "add", "cumsum"))


def test_nan_and_errors_rank_before_differences(tmp_path):
    x = strata.ones(3, device=DEVICE)
    with strata.library.override("aten::sin", lambda self: self.cos() * float("nan"), "null"), \
            strata.library.override("aten::cos", lambda self: self + 5, "null"), strata.debug.dump(tmp_path, compare="cpu", level=2):
        x.cos()
        x.sin()
    text = strata.debug.report(tmp_path)
    lines = text.splitlines()
    assert "aten::sin" in lines[2] and "3 NaN, on the CPU 0" in lines[2] and "aten::cos" in lines[3]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<tr") == 3 and page.index("aten::sin") < page.index("aten::cos") and 'class="bad"' in page
    saved = strata.safetensors.load_file(next(tmp_path.glob("*_aten.cos.safetensors")))
    assert saved["input0"].tolist() == [1, 1, 1] and saved["output0"].tolist() == [6, 6, 6]


def test_without_a_comparison_and_wrong_arguments(tmp_path):
    with strata.debug.dump(tmp_path, level=0):
        strata.ones(2) + 1
        with pytest.raises(RuntimeError):
            strata.ones(2) + strata.ones(3)
    found = rows(tmp_path)
    assert [r["op"] for r in found] == ["aten::ones", "aten::add.Tensor", "aten::ones", "aten::ones", "aten::add.Tensor"]
    assert "statistics" not in found[0] and found[-1]["raised"].startswith("RuntimeError") and "test_debug.py:" in found[0]["line"]
    assert "RuntimeError" in strata.debug.report(tmp_path).splitlines()[2]
    for wrong in ({"level": 3}, {"compare": "there"}):
        with pytest.raises(ValueError, match="expected"):
            strata.debug.dump(tmp_path, **wrong)
    with pytest.raises(FileNotFoundError, match="calls.jsonl"):
        strata.debug.report(tmp_path / "none")
