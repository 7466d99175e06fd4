"""Short programs of users of devices with the exact outcomes that they know, on the null device."""

from __future__ import annotations

import ctypes
import warnings

import devices
import pytest
import strata as torch

DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(devices.plugin("null"))).strata_null_control


@pytest.fixture
def hidden():
    """Hides operators of the device until the test ends."""
    yield lambda names: CONTROL(b"hide", names.encode())
    CONTROL(b"hide", b"")


@pytest.fixture(autouse=True)
def a_ledger_of_its_own():
    torch.fallback.reset()
    yield
    torch.fallback.on()
    torch.accelerator.synchronize(DEVICE)


def test_one_operator_and_two_kernels():
    a, b = torch.ones(5), torch.ones(5)
    assert str(a.add(b).device) == "cpu"
    here = torch.explain_dispatch("add", a, b)
    a, b = a.to("null"), b.to("null")
    c = a.add(b)
    assert repr(c.device) == "device(type='null', index=0)" and c.tolist() == [2.0] * 5
    there = torch.explain_dispatch("add", a, b)
    assert here.splitlines()[0].split("(")[0] == there.splitlines()[0].split("(")[0]
    assert "null" in there and "null" not in here and here != there


@pytest.mark.filterwarnings("ignore:Overriding")
def test_a_kernel_for_the_device_changes_that_key_alone():
    host = torch.tensor([1.0, -2.0])
    there = host.to("null")
    with torch.library.override("aten::neg", lambda self: self + 100, "null"):
        assert torch.neg(there).tolist() == [101.0, 98.0] and (-there).tolist() == [101.0, 98.0]
        assert torch.neg(host).tolist() == [-1.0, 2.0]
    assert torch.neg(there).tolist() == [-1.0, 2.0]


def test_a_device_without_neg(hidden):
    hidden("aten::neg")
    x = torch.tensor([1.0, -2.0], device="null", requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = torch.neg(x)
        torch.neg(x)
    assert len([w for w in seen if "aten::neg" in str(w.message)]) <= 1  # once in a process
    y.sum().backward()
    assert y.device.type == "null" and y.tolist() == [-1.0, 2.0] and x.grad.tolist() == [-1.0, -1.0]
    row = next(r for r in torch.fallback.rows() if r.op == "aten::neg")
    assert row.device == "null" and row.calls >= 2 and row.bytes >= 32


@pytest.mark.filterwarnings("ignore:Overriding")
def test_add_is_overridden_on_the_device_and_restored():
    a = torch.ones(2, device="null")
    with torch.library.override("aten::add.Tensor", lambda self, other, *, alpha=1: self * 10, "null"):
        assert (a + a).tolist() == [10.0, 10.0]
        assert (a.cpu() + a.cpu()).tolist() == [2.0, 2.0]
    assert (a + a).tolist() == [2.0, 2.0]


def test_the_leaf_trap():
    x = torch.ones(3, requires_grad=True).to("null")
    y = (x * 2).sum()
    y.backward()
    with pytest.warns(UserWarning, match="not a leaf Tensor.*ToCopyBackward0"):
        assert x.grad is None
    leaf = torch.ones(3, device="null", requires_grad=True)
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_fallback_on_and_off(hidden):
    hidden("aten::softshrink aten::softshrink_backward strata::softshrink_grad_self aten::nanmedian.dim")
    host = torch.tensor([[-1.0, 0.2, 2.0], [float("nan"), 0.7, 3.0]])
    want = host.clone().requires_grad_()
    torch.nn.functional.softshrink(want).nansum().backward()
    there = host.to("null").requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nn.functional.softshrink(there).nansum().backward()
        values, places = torch.nanmedian(there, 1)
    assert there.grad.device.type == "null" and torch.equal(there.grad.cpu().nan_to_num(9), want.grad.nan_to_num(9))
    assert values.tolist() == host.nanmedian(1).values.tolist() and places.tolist() == host.nanmedian(1).indices.tolist()
    ops = {r.op for r in torch.fallback.rows()}
    assert "aten::softshrink" in ops and any(o.startswith("aten::nanmedian") for o in ops) and len(ops) >= 3
    torch.fallback.off()
    out = torch.empty(2, device="null"), torch.empty(2, device="null", dtype=torch.int64)
    with pytest.raises(NotImplementedError, match=r"aten::nanmedian\.dim_values.*'null'.*strata\.fallback\.on"):
        torch.nanmedian(there.detach(), 1, out=out)


def test_an_operator_that_fails_on_the_device_runs_on_the_cpu():
    x = torch.arange(4.0, device="null")
    base = torch.zeros(3, 4, device="null")
    (x.tan() + 1).cpu()  # compiled
    torch.fallback.on(failures=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CONTROL(b"fail_kernel", b"1")
        assert torch.equal(x.tan().cpu(), x.cpu().tan())
        CONTROL(b"fail_kernel", b"1")
        base[1].add_(x)
    assert base.tolist() == [[0] * 4, [0, 1, 2, 3], [0] * 4]
    assert {(r.op, r.calls) for r in torch.fallback.rows()} == {("aten::tan", 1), ("aten::add_.Tensor", 1)}
    torch.fallback.on()
    CONTROL(b"fail_kernel", b"1")
    with pytest.raises(RuntimeError, match="a kernel failed"):
        x.tan().cpu()
    assert x.tan().cpu().equal(x.cpu().tan())
