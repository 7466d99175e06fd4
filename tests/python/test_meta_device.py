"""Tensors on the device meta: shapes without memory, for models that are built before they get their values."""

import pytest
import strata as torch


def test_factories_and_results():
    x = torch.empty(2, 3, device="meta")
    assert x.is_meta and x.device == torch.device("meta") and x.device.type == "meta"
    y = (x @ x.t()).softmax(-1) + 1
    assert y.shape == (2, 2) and y.is_meta and y.device == x.device and y.dtype == torch.float32
    for made in (torch.randn(3, device="meta"), torch.arange(5, device="meta"), torch.tensor([1, 2], device="meta")):
        assert made.is_meta
    assert torch.zeros(3).to("meta").is_meta and not torch.empty_like(x, device="cpu").is_meta


def test_a_module_gets_its_memory_later():
    layer = torch.nn.Linear(3, 4, device="meta")
    assert layer(torch.ones(2, 3, device="meta")).shape == (2, 4)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        layer.to("cpu")
    layer.to_empty(device="cpu")
    layer.reset_parameters()
    assert layer(torch.ones(2, 3)).isfinite().all()


def test_values_are_refused():
    x = torch.ones(2, device="meta")
    for read in (x.tolist, x.sum().item, x.numpy):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
            read()
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(2)


def test_default_device():
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("meta"):
        assert torch.get_default_device() == torch.device("meta")
        layer = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Embedding(3, 4))
        assert all(t.is_meta for t in [*layer.parameters(), *layer.buffers()])
        assert torch.tensor([1.0]).is_meta and torch.randperm(4).is_meta and torch.linspace(0, 1, 3).is_meta
        with torch.device("cpu"):
            assert not torch.zeros(2).is_meta
        assert torch.zeros(2).is_meta and not torch.zeros(2, device="cpu").is_meta
    assert not torch.zeros(2).is_meta
    torch.set_default_device("meta")
    try:
        assert torch.ones(2).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(2).is_meta
