"""Sizes that PyTorch refuses are refused, by the same kind of error."""

from __future__ import annotations

import pytest
import strata as torch

F = torch.nn.functional
CASES = {
    "avg_pool3d": (lambda: F.avg_pool3d(torch.ones(1, 1, 3, 3, 3), (4, 1, 1), padding=(1, 0, 0)), RuntimeError, "smaller than kernel size"),
    "conv_transpose1d": (lambda: F.conv_transpose1d(torch.ones(1, 1, 4), torch.ones(1, 1, 1), padding=2), RuntimeError, "output would have size 0"),
    "conv_transpose2d": (lambda: F.conv_transpose2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 1, 1), padding=2), RuntimeError, "too small"),
    "repeat_interleave": (lambda: torch.tensor(1.0).repeat_interleave(2, 0), IndexError, "has no dims"),
    "repeat_interleave of a tensor": (lambda: torch.tensor(1.0).repeat_interleave(torch.tensor([2]), 0), IndexError, "has no dims"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    call, kind, match = CASES[name]
    with pytest.raises(kind, match=match):
        call()


def test_what_is_like_them_is_taken():
    assert F.avg_pool2d(torch.ones(1, 1, 3, 3), (4, 1), padding=(1, 0)).shape == (1, 1, 1, 3)
    assert F.conv_transpose1d(torch.ones(1, 1, 3), torch.ones(1, 1, 1), padding=1).shape == (1, 1, 1)
    assert torch.tensor(1.0).repeat_interleave(2).tolist() == [1.0, 1.0]
