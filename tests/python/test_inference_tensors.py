"""Tensors that inference mode made, outside of it: no write, no place in a backward; what PyTorch 2.13 does, which passes these."""

from __future__ import annotations

import pytest
import strata as torch

WRITES = {
    "add_": lambda t: t.add_(1),
    "index": lambda t: t.__setitem__(0, 5),
    "mask": lambda t: t.__setitem__(t > 0, 5),
    "view": lambda t: t.view(3).zero_(),
    "out": lambda t: torch.add(torch.ones(3), 1, out=t),
    "copy_": lambda t: t.copy_(torch.ones(3)),
    "fill_": lambda t: t.fill_(2),
    "init": lambda t: torch.nn.init.ones_(t),
    "foreach": lambda t: torch._foreach_add_([torch.ones(3), t], 1),
    "resize_": lambda t: t.resize_(4),
    "set_": lambda t: t.set_(torch.zeros(3)),
    "turned": lambda t: t.unsqueeze_(0),
    "uniform_": lambda t: t.uniform_(),
    "no_grad": torch.no_grad()(lambda t: t.mul_(2)),
}


def made() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(3)


@pytest.mark.parametrize("name", WRITES)
def test_writes_outside_are_refused(name):
    t = made()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        WRITES[name](t)
    if torch.__name__ == "strata":  # PyTorch raises after the write
        assert t.tolist() == [1, 1, 1] and t.shape == (3,)


@pytest.mark.parametrize("name", [name for name in WRITES if name not in ("resize_", "set_")])
def test_writes_inside_are_not(name):
    with torch.inference_mode():
        WRITES[name](torch.ones(3))


def test_normal_tensors_are_written_in_the_mode_and_count():
    x = torch.ones(3)
    with torch.inference_mode():
        x.view(3).add_(1)
        x.add_(1)
    assert x._version == 2 and not x.is_inference() and x.tolist() == [3, 3, 3]


def test_a_module_of_the_mode():
    with torch.inference_mode():
        m = torch.nn.Linear(2, 2)
        m.weight.mul_(2)
    assert m.weight.requires_grad and m.weight.is_inference()
    assert m(torch.ones(1, 2)).shape == (1, 2)
    with pytest.raises(RuntimeError, match="Error\\(s\\) in loading state_dict"):
        m.load_state_dict(torch.nn.Linear(2, 2).state_dict())
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        made().requires_grad_()


def test_not_saved_for_a_backward():
    w = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward. Please do not use"):
        w * made()
    assert (w + made()).sum().requires_grad


def test_copies_and_results_are_normal():
    t = made()
    for copy in (t.clone(), t + 0, t.detach().clone()):
        copy.add_(1)
        assert not copy.is_inference()


def test_compiled_functions_refuse_as_well():
    f = torch.compile(lambda t: t.add_(1), backend="eager" if hasattr(torch, "_inductor") else "strata")
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        f(made())
    with torch.inference_mode():
        assert f(torch.ones(3)).tolist() == [2, 2, 2]
