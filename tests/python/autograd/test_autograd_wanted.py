"""A backward that is asked for some inputs computes their gradients alone."""

from __future__ import annotations

import threading

import strata as torch
from strata.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name.split("::")[-1])
        return func(*args, **(kwargs or {}))

    def count(self, name):
        return self.names.count(name)


def operands(*shape, count=2):
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for _ in range(count)]


def test_products():
    a, b = operands(4, 4)
    y = (a @ b).sum()
    for asked, products in (([a], 1), ([b], 1), ([a, b], 2)):
        with Calls() as calls:
            torch.autograd.grad(y, asked, retain_graph=True)
        assert calls.count("mm") == products
    with Calls() as calls:
        y.backward(inputs=[b], retain_graph=True)
    assert calls.count("mm") == 1 and a.grad is None
    whole = torch.autograd.grad(y, [a, b])
    assert torch.equal(b.grad, whole[1])


def test_below_what_is_asked_for():
    """The edge to an intermediate result counts where it, or an input behind it, is asked for."""
    a, b, c = operands(4, 4, count=3)
    middle = a @ b
    y = (middle @ c).sum()
    for asked, products in (([middle], 1), ([c], 1), ([a], 2), ([a, middle], 2), ([a, b, c], 4)):
        with Calls() as calls:
            torch.autograd.grad(y, asked, retain_graph=True)
        assert calls.count("mm") == products, len(asked)


def test_a_write_through_a_view():
    a, b = operands(4, 4)
    whole = a * 1
    whole[0].mul_(b[1])
    y = (whole * whole).sum()
    both = torch.autograd.grad(y, [a, b], retain_graph=True)
    for of, want in zip((a, b), both, strict=True):
        assert torch.equal(torch.autograd.grad(y, of, retain_graph=True)[0], want)


def test_a_backward_within_a_backward():
    """The inner one is asked for other inputs than the outer one."""
    a, b = operands(3, 3)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                u, v = x.detach().requires_grad_(), x.detach().requires_grad_()
                (u @ v).sum().backward()
            assert u.grad is not None and v.grad is not None
            return grad * 2

    y = (Inner.apply(a) @ b).sum()
    whole = torch.autograd.grad(y, [a, b], retain_graph=True)
    assert torch.equal(torch.autograd.grad(y, a, retain_graph=True)[0], whole[0])
    assert torch.equal(torch.autograd.grad(y, b)[0], whole[1])


def test_beside_whole_runs_of_other_threads():
    failed = []

    def work(selective):
        a, b = operands(16, 16)
        for _ in range(200):
            y = (a @ b).sum()
            if selective:
                if torch.autograd.grad(y, a)[0] is None:
                    failed.append("grad")
            else:
                y.backward()
                if a.grad is None or b.grad is None:
                    failed.append("backward")
                a.grad = b.grad = None

    threads = [threading.Thread(target=work, args=(k % 2 == 0,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
