"""FlopCounterMode: the counts that PyTorch 2.13 gives, and those of attention, which it counts on other devices alone."""

from __future__ import annotations

import pytest
import strata
from strata import nn
from strata.nn import functional as F
from strata.utils.flop_counter import FlopCounterMode
from strata.utils.module_tracker import ModuleTracker


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


def test_counts_of_modules_are_pytorchs():
    """Recorded from PyTorch 2.13."""

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x)) @ self.a.weight

    nested = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2)))
    want = {
        "Global": {"aten.addmm": 192, "aten.mm": 256}, "Sequential": {"aten.addmm": 192, "aten.mm": 256},
        "Sequential.0": {"aten.addmm": 128, "aten.mm": 128}, "Sequential.2": {"aten.addmm": 64, "aten.mm": 128},
        "Sequential.2.0": {"aten.addmm": 64, "aten.mm": 128},
    }, {"Global": {"aten.addmm": 128, "aten.mm": 384}, "Shared": {"aten.addmm": 128, "aten.mm": 384}, "Shared.a": {"aten.addmm": 128, "aten.mm": 128}}  # fmt: skip
    for net, expected in zip((nested, Shared()), want, strict=True):
        counter = FlopCounterMode(display=False)
        for _ in range(2):  # each block counts anew
            with counter:
                net(strata.ones(2, 4)).sum().backward()
            assert {name: {str(op): n for op, n in counts.items()} for name, counts in counter.get_flop_counts().items()} == expected
    text = counter.get_table(depth=1)
    assert " Shared " in text and "Shared.a" not in text and "Shared.a" in counter.get_table()


def test_nothing_stays_on_tensors_and_children_are_named_by_their_parents():
    net, x = nn.Sequential(nn.Linear(4, 4)), strata.ones(2, 4, requires_grad=True)
    counter = FlopCounterMode(display=False)
    for _ in range(3):
        with counter:
            net[0](x)
            net(x).sum().backward()
    assert not x._backward_hooks and set(counter.get_flop_counts()) == {"Global", "Sequential", "Sequential.0"}


def test_modules_are_tracked_through_a_backward():
    seen = []

    class Told(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((tracker.is_bw, sorted(tracker.parents)))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((tracker.is_bw, sorted(tracker.parents)))
            return grad

    class Tell(nn.Module):
        def forward(self, x):
            return Told.apply(x)

    tracker = ModuleTracker()
    with tracker:
        nn.Sequential(Tell(), nn.Tanh(), nn.Sequential(Tell()))(strata.ones(2, requires_grad=True)).sum().backward()
        with pytest.raises(ZeroDivisionError):
            nn.Sequential(Failing())(strata.ones(1))
        assert tracker.parents == {"Global"} and not tracker.is_bw
    first, last = ["Global", "Sequential", "Sequential.0"], ["Global", "Sequential", "Sequential.2", "Sequential.2.0"]
    assert seen == [(False, first), (False, last), (True, last), (True, first)]


class Failing(nn.Module):
    def forward(self, x):
        return 1 / 0
