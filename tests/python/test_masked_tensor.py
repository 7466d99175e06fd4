"""Masked tensors: choices between two of them, and how they print."""

import strata as torch
from strata.masked import masked_tensor


def test_where_chooses_data_and_masks():
    x = torch.tensor([-10.0, -5.0, 0.0, 90.0, 100.0], requires_grad=True)
    negative = x < 0
    a = masked_tensor(x, negative, requires_grad=True)
    b = masked_tensor(torch.ones_like(x), ~negative, requires_grad=True)
    chosen = torch.where(negative, torch.exp(a), b)
    assert chosen.get_mask().all()
    chosen.sum().backward()
    assert torch.allclose(a.grad.to_tensor(0.0), torch.where(negative, x.detach().exp(), 0.0))
    plain = torch.where(negative, a, torch.zeros(5))
    assert plain.to_tensor(7.0).tolist() == [-10.0, -5.0, 0.0, 0.0, 0.0] and plain.get_mask().all()
    hidden = torch.where(negative, b, torch.zeros(5))
    assert hidden.get_mask().tolist() == [False, False, True, True, True]


def test_what_is_masked_prints_as_wide_as_its_row():
    mask = torch.tensor([[True, False], [True, True]])
    assert repr(masked_tensor(torch.tensor([[True, True], [False, True]]), mask)) == (
        "MaskedTensor(\n  [\n    [True,       --],\n    [False, True]\n  ]\n)"
    )
    assert repr(masked_tensor(torch.tensor([1, 123456789012]), torch.tensor([False, True]))) == "MaskedTensor(\n  [          --, 123456789012]\n)"
    assert repr(masked_tensor(torch.tensor([1.5, 2.0]), torch.tensor([True, False]))) == "MaskedTensor(\n  [  1.5000,       --]\n)"
