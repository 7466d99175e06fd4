"""Views of complex tensors as real ones and back, written by recorded operators: gradients are the slopes of what was computed."""

from __future__ import annotations

import pytest
import strata as torch
from strata.autograd import gradcheck

OF_COMPLEX = {
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "parts": torch.view_as_real,
    "turned": lambda z: z.transpose(0, 2).real[1],
    "strided": lambda z: torch.view_as_real(z[:, 1, ::2])[..., 1],
    "and back": lambda z: torch.view_as_complex(torch.view_as_real(z)[:, 1]),
}
OF_REAL = {
    "whole": torch.view_as_complex,
    "turned": lambda x: torch.view_as_complex(x).permute(2, 0, 1),
    "imag": lambda x: torch.view_as_complex(x).imag[:, 2],
    "part": lambda x: torch.view_as_complex(x[1, :, 1:3]),
    "and back": lambda x: torch.view_as_real(torch.view_as_complex(x[0])),
}
WRITES = {
    "mul": lambda whole, view, other: view.mul_(other),
    "copy": lambda whole, view, other: view.copy_(other.expand(view.shape)),
    "zero": lambda whole, view, other: view.zero_(),
    "base": lambda whole, view, other: whole.mul_(other),
    "both": lambda whole, view, other: (view.mul_(other), whole.mul_(other)),
}


def reals(t):
    return torch.view_as_real(t) if t.is_complex() else t


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("dtype", "view"), [(torch.complex128, v) for v in OF_COMPLEX] + [(torch.float64, v) for v in OF_REAL])
def test_gradients(dtype, view, write):
    torch.manual_seed(3)
    shape = (2, 3, 4) if dtype.is_complex else (2, 3, 4, 2)
    shown = (OF_COMPLEX if dtype.is_complex else OF_REAL)[view]
    start = torch.randn(shape, dtype=dtype, requires_grad=True)
    other = torch.full((1,), 1.5, dtype=torch.float64, requires_grad=True)

    def f(start, other):
        whole = start * 1.0
        part = shown(whole)
        WRITES[write](whole, part, other)
        return reals(whole).sin().sum() + (reals(part) * reals(part)).cos().sum()

    assert gradcheck(f, (start, other))


def test_other_bytes_are_no_view_to_derivatives():
    z = torch.ones(3, dtype=torch.complex64, requires_grad=True) * 1
    bytes_of = z.view(torch.float32)
    assert not bytes_of._is_view() and not bytes_of.requires_grad
    node = z.grad_fn
    bytes_of.mul_(torch.ones(6, requires_grad=True))
    assert z.grad_fn is node and bytes_of.requires_grad


def test_as_strided_of_what_is_expanded():
    """Each element of one place gets an equal share: what is summed for the place is counted once."""
    for size, stride in (((3, 4), (1, 0)), ((3,), (1,)), ((2, 2), (1, 1))):
        w = torch.arange(9.0).view(3, 3).requires_grad_()
        torch.as_strided(w[:1].expand(4, 3), size, stride, 0).sum().backward()
        v = torch.arange(9.0).view(3, 3).requires_grad_()
        torch.as_strided(v[:1], size, stride, 0).sum().backward()
        assert w.grad.tolist() == v.grad.tolist()
