"""Short programs of PyTorch's users with the exact outcomes that they know. What adding one entry of the table makes is
tests/gen/test_add_operator.py."""

from __future__ import annotations

import re

import pytest
import strata as torch


def test_adding_two_tensors_prints_the_sum(capsys):
    a = torch.ones(5)
    b = torch.ones(5)
    c = a + b
    print(c)
    assert capsys.readouterr().out == "tensor([2., 2., 2., 2., 2.])\n"


def test_backward_and_its_graph(capsys):
    a = torch.ones(5, 5, requires_grad=True)
    b = torch.ones(5, 5, requires_grad=True)
    c = (a + b).sum()
    print(c)
    print(c.grad_fn)
    c.backward()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "tensor(50., grad_fn=<SumBackward0>)"
    assert re.fullmatch(r"<SumBackward0 object at 0x[0-9a-f]+>", second)
    for grad in (a.grad, b.grad):
        assert grad.shape == (5, 5) and grad.tolist() == [[1.0] * 5] * 5
    (add, number), = c.grad_fn.next_functions
    assert (add.name(), number) == ("AddBackward0", 0)
    assert re.fullmatch(r"\(\(<AddBackward0 object at 0x[0-9a-f]+>, 0\),\)", repr(c.grad_fn.next_functions))
    leaves = [node for node, _ in add.next_functions]
    assert [type(n).__name__ for n in leaves] == ["AccumulateGrad", "AccumulateGrad"]
    assert leaves[0].variable is a and leaves[1].variable is b
    assert all(n.next_functions == () for n in leaves)


@pytest.mark.filterwarnings("ignore:Overriding")
def test_a_kernel_for_one_key():
    x = torch.tensor([1.0, -2.0])
    with torch.library.override("aten::neg", lambda self: self + 100, "CPU"):
        assert torch.neg(x).tolist() == [101.0, 98.0]
        assert (-x).tolist() == [101.0, 98.0]
        assert "neg" in torch.explain_dispatch("neg", x)
        shape = torch.neg(torch._C._shape_only(x))
        assert shape.is_meta and shape.shape == (2,)
        # Autograd's kernel is untouched: the node is NegBackward0, which calls neg in turn.
        y = x.clone().requires_grad_()
        z = torch.neg(y).sum()
        assert z.grad_fn.next_functions[0][0].name() == "NegBackward0"
        z.backward()
        assert y.grad.tolist() == [101.0, 101.0]
    assert torch.neg(x).tolist() == [-1.0, 2.0]


@pytest.mark.filterwarnings("ignore:Overriding")
def test_overriding_add_and_restoring_it():
    a, b = torch.ones(2), torch.ones(2)
    calls = []

    def mine(self, other, *, alpha=1):
        calls.append(alpha)
        return self * 10

    with torch.library.override("aten::add.Tensor", mine, "CPU"):
        assert (a + b).tolist() == [10.0, 10.0]
        with torch.library.override("aten::add.Tensor", lambda self, other, *, alpha=1: self * 20, "CPU"):
            assert (a + b).tolist() == [20.0, 20.0]
        assert torch.add(a, b, alpha=3).tolist() == [10.0, 10.0]
    assert calls == [1, 3]
    assert (a + b).tolist() == [2.0, 2.0]


def test_a_fallback_for_a_whole_key():
    """For one key, every operator without a kernel of its own goes to the fallback; others are untouched."""
    seen = []

    def log(op, *args, **kwargs):
        seen.append(op.name())
        return op(*args, **kwargs)

    x = torch.ones(2)
    with torch.library.register_fallback("User0", log):
        with torch.library.active_keys("User0"):
            assert torch.neg(x).tolist() == [-1.0, -1.0]
            assert torch.add(x, x).tolist() == [2.0, 2.0]
        torch.neg(x)
    assert seen == ["aten::neg", "aten::add.Tensor"]


def test_the_profiler_names_forward_and_backward():
    from strata.profiler import ProfilerActivity, profile

    x = torch.ones(1000, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        y = x * 2 + 4
        y.backward(torch.ones(1000))
    rows = {e.key: e for e in recorded.key_averages()}
    assert {"aten::mul", "aten::add", "AddBackward0", "MulBackward0"} <= set(rows)
    assert rows["aten::mul"].count == rows["aten::add"].count == rows["AddBackward0"].count == rows["MulBackward0"].count == 1
    # What runs inside MulBackward0 counts there once: the total is the sum of what each did itself.
    nested = rows["strata::mul_Scalar_grad_self"]
    assert rows["MulBackward0"].cpu_time_total >= rows["MulBackward0"].self_cpu_time_total + nested.cpu_time_total - 1e-6
    total = sum(e.self_cpu_time_total for e in recorded.key_averages())
    text = recorded.key_averages().table(sort_by="cpu_time_total")
    value, unit = re.search(r"Self CPU time total: ([\d.]+)(us|ms|s)", text).groups()
    assert abs(float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit] - total) <= 0.02 * total
    assert torch.equal(x.grad, torch.full((1000,), 2.0))


def test_a_function_s_node_prints_with_its_module():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = Double.apply(torch.ones(2, requires_grad=True))
    assert repr(y) == "tensor([2., 2.], grad_fn=<DoubleBackward>)" and y.grad_fn.name() == "DoubleBackward"
    assert re.fullmatch(r"<strata\.autograd\.function\.DoubleBackward object at 0x[0-9a-f]+>", repr(y.grad_fn))
    assert repr(type(y.grad_fn)) == "<class 'strata.autograd.function.DoubleBackward'>"
