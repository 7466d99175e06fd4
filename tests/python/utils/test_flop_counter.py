"""FlopCounterMode: the counts that PyTorch 2.13 gives, and those of attention, which it counts on other devices alone."""

from __future__ import annotations

import pytest
import strata
from strata import nn
from strata.nn import functional as F
from strata.utils.flop_counter import FlopCounterMode


def count(f):
    with FlopCounterMode(display=False) as counter:
        f()
    found = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    assert counter.get_total_flops() == sum(found.values())
    return found


X, NET = strata.ones(2, 3, 8, 8), nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
A, SQUARES = strata.ones(3, 4, requires_grad=True), strata.ones(5, 3, 4)
Q = strata.ones(1, 2, 4, 8, requires_grad=True)
GROUPED, TRANSPOSED = nn.Conv2d(4, 8, 3, groups=2, padding=1, stride=2), nn.ConvTranspose2d(2, 3, 2)


@pytest.mark.parametrize("f, counts", [
    (lambda: NET(X), {"aten.convolution": 31104, "aten.addmm": 11520}),
    (lambda: NET(X).sum().backward(),
     {"aten.convolution": 31104, "aten.addmm": 11520, "aten.mm": 23040, "aten.convolution_backward": 31104}),
    (lambda: (A @ A.t()).sum().backward(), {"aten.mm": 216}),
    (lambda: strata.einsum("ij,kj->ik", A, A), {"aten.bmm": 72}),
    (lambda: strata.matmul(SQUARES, strata.ones(4, 2)), {"aten.mm": 240}),
    (lambda: strata.matmul(SQUARES, strata.ones(5, 4, 2)), {"aten.bmm": 240}),
    (lambda: strata.ones(4) @ strata.ones(4), {}),
    (lambda: nn.MultiheadAttention(8, 2)(*[strata.ones(4, 1, 8)] * 3), {"aten.addmm": 2048, "aten.bmm": 512}),
    (lambda: TRANSPOSED(strata.ones(1, 2, 4, 4)).sum().backward(), {"aten.convolution": 768, "aten.convolution_backward": 768}),
    (lambda: GROUPED(strata.ones(1, 4, 8, 8, requires_grad=True)).sum().backward(),
     {"aten.convolution": 4608, "aten.convolution_backward": 13824}),
    (lambda: strata.baddbmm(strata.ones(1), strata.ones(2, 3, 4), strata.ones(2, 4, 5)), {"aten.baddbmm": 240}),
    (lambda: nn.Conv1d(2, 3, 3)(strata.ones(2, 9)), {"aten.convolution": 252}),
    (lambda: F.scaled_dot_product_attention(Q, Q, Q).sum().backward(), {"aten.scaled_dot_product_attention": 1024 + 2560}),
])  # fmt: skip
def test_counts(f, counts):
    assert count(f) == counts


def test_counts_of_ones_own_and_the_table(capsys):
    def relu(shape, *, out_shape):
        return shape.numel() + out_shape.numel()

    with FlopCounterMode(custom_mapping={strata.ops.aten.relu: relu}) as counter:
        F.linear(strata.ones(2, 3), strata.ones(4, 3)).relu()
    assert counter.get_total_flops() == 48 + 16
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["Global", "64", "100.00%"] and lines[3].split() == ["-", "aten.mm", "48", "75.00%"]


def test_what_is_not_counted_is_said():
    with pytest.raises(NotImplementedError, match="einsum 'ij,jk,kl->il' is not counted"):
        count(lambda: strata.einsum("ij,jk,kl->il", A, A.t(), A))
