"""Arguments that were taken and not looked at: pinned memory, layouts, devices in names of types."""

import pytest
import strata

X = strata.ones(2)


@pytest.mark.parametrize("make", [lambda **k: strata.zeros(2, **k), lambda **k: strata.tensor([1.0], **k), lambda **k: strata.rand(2, **k)])
def test_pinned_memory_is_had_or_refused(make):
    assert make(pin_memory=False).shape
    if not strata.accelerator.is_available():
        with pytest.raises(RuntimeError, match="pin_memory"):
            make(pin_memory=True)
    with pytest.raises(TypeError, match="pin_memory.*bool"):
        make(pin_memory=3)


def test_layouts():
    assert strata.zeros(2, layout=strata.strided).tolist() == [0, 0]
    with pytest.raises(TypeError, match="'layout' must be strata.strided .*sparse_coo_tensor"):
        strata.zeros(2, layout=strata.sparse_coo)


def test_types_name_devices():
    assert X.type("torch.DoubleTensor").dtype is X.type("DoubleTensor").dtype is strata.float64
    assert X.type("strata.cpu.IntTensor").dtype is strata.int32
    with pytest.raises(RuntimeError, match="device"):
        X.type("torch.nowhere.FloatTensor")
    with pytest.raises(ValueError, match="invalid type"):
        X.type("torch.FooTensor")
