"""Compiled graphs on devices: fused kernels in the device's dialect, one program a graph, the CPU's bits."""

from __future__ import annotations

import devices
import pytest
import strata
from strata.nn import functional as F

DEVICE = devices.null()


def launches() -> int:
    strata.accelerator.synchronize(DEVICE)
    return strata.cache.stats(DEVICE)["launches"]


def same(a, b) -> bool:
    a, b = a.detach().cpu(), b.detach().cpu()
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


def called(f, given, grad: bool):
    """Results, then gradients, of a function on fresh leaves, from the same seed."""
    leaves = [x.clone().requires_grad_(grad and x.is_floating_point()) for x in given]
    strata.manual_seed(11)
    made = f(*leaves)
    made = list(made) if isinstance(made, (tuple, list)) else [made]
    if not grad:
        return made
    wanted = [x for x in leaves if x.requires_grad]
    return made + list(strata.autograd.grad([y.sum() for y in made], wanted))


def check(f, *given, grad: bool = False, kernels: int | None = None, device=DEVICE):
    """Compiled there, f gives the CPU's bits, by so many launches."""
    want = called(f, given, grad)
    there = [x.to(device) for x in given]
    compiled = strata.graph(f, *[x.clone().requires_grad_(grad and x.is_floating_point()) for x in there]).compile()
    called(compiled, there, grad)  # compiles
    got = called(compiled, there, grad)
    assert all(same(a, b) for a, b in zip(want, got, strict=True)), compiled.explain()
    assert all(y.device == there[0].device for y in got)
    if kernels is not None:
        leaves = [x.clone().requires_grad_(grad and x.is_floating_point()) for x in there]
        before = launches()
        made = compiled(*leaves)
        assert launches() - before == kernels, compiled.explain()
        del made
    return compiled


def test_a_function_of_elements_is_one_launch():
    def f(x):
        return x.sin() ** 2 + x.cos() ** 2

    c = check(f, strata.randn(1000, 37), kernels=1)
    assert "1 fused kernels, 0 operators by themselves" in c.explain() and "for null:0" in c.explain()
    assert "run_1" in c.source() and "fused" in c.source()
    check(f, strata.randn(50, 7), grad=True, kernels=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_dtypes(dtype):
    strata.manual_seed(0)
    x, b = (strata.randn(*s).to(getattr(strata, dtype)) for s in ((33, 70), (70,)))
    check(lambda x, b: F.gelu(x * 2 + b).exp() - x.abs().sqrt(), x, b, kernels=1)
    check(lambda x, b: F.gelu(x + b), x, b, grad=True, kernels=1)


def test_integers_and_conditions():
    x, y = strata.randint(-50, 50, (20, 30)), strata.randint(1, 9, (30,))
    check(lambda x, y: strata.where(x > y, x * y, x - 3).to(strata.float32) / 2, x, y, kernels=1)
    check(lambda x: ((x > 3) & (x < 20)).any(1), x)


@pytest.mark.parametrize("shape", [(100, 64), (7, 3), (40, 2000), (2, 5, 33)])
def test_rows(shape):
    x = strata.randn(shape)
    check(lambda x: (x * 3).softmax(-1) + 1, x, kernels=1)
    check(lambda x: (x * 3).softmax(0) + 1, x, grad=True, kernels=1)
    n = shape[-1]
    check(lambda x, w, b: F.gelu(F.layer_norm(x, (n,), w, b)), x, strata.randn(n), strata.randn(n), grad=True)
    check(lambda x: F.normalize(x.exp(), dim=-1).log(), x, grad=True)


def test_rows_written_where_they_are_read():
    # Rows too short for groups are an item's own.
    for n in (3, 9, 200):

        def f(x):
            y = x.floor()
            x.mul_(x)
            return x.erf().std(-1, keepdim=True).sigmoid(), y

        check(f, strata.randn(60, n))


def test_few_long_rows_are_reduced_by_chunks():
    check(lambda x: (x * 2 + 1).sum(), strata.randn(300_000), kernels=2)
    check(lambda x: (x * 2).var(-1), strata.randn(3, 100_000))
    c = check(lambda x: (x * 3).softmax(-1), strata.randn(2, 140_000))
    assert "its rows are few and long" in c.explain()


def test_draws_make_their_words_in_the_kernel():
    x = strata.randn(33, 70)
    check(lambda x: F.dropout(x * 2, 0.3) + 1, x, kernels=1)
    check(lambda x: F.dropout(x, 0.3).softmax(-1) + strata.rand_like(x), x, grad=True, kernels=1)
    check(lambda x: strata.randn_like(x) * x.t().contiguous().t() + strata.rand_like(x), x)
    check(lambda x: strata.randn_like(x) * x + strata.rand_like(x) * 2, x.t(), kernels=1)
    # Two draws of one graph, of which another operator draws by itself in between, go on in eager's order.
    check(lambda x: F.dropout(x, 0.5) + F.dropout(x, 0.5).cumsum(0) + F.dropout(x.tanh(), 0.25), x)


def test_layouts_and_views():
    x = strata.randn(30, 50)
    check(lambda x: x.t().sin() + x.t().contiguous().exp(), x, kernels=1)
    check(lambda x: x[::2, 1::3].cos() * 2, x, kernels=1)
    check(lambda x, b: x.unsqueeze(0) + b.unsqueeze(1), x, strata.randn(4, 50), kernels=1)
    check(lambda x: x.view(5, 6, 50).permute(2, 0, 1).sum(1).exp(), x)
    check(lambda x: x.flip(1)[:, :3].sin() + x[:, 1:4], x, grad=True)
    check(lambda x, i: x.gather(1, i).exp() + x.index_select(0, i[:, 0])[:, :4], x, strata.randint(0, 30, (30, 4)))
    check(lambda x: strata.zeros(0, 3, device=x.device).sum(1) + x[:0, 0] * 2, x)


def test_writes_of_arguments():
    def f(x, y):
        z = x * 2
        z.add_(1)
        x.mul_(z)
        y[1:3] += x[1:3]
        return z.exp()

    x, y = strata.randn(30, 5), strata.randn(30, 5)
    there = [x.to(DEVICE), y.to(DEVICE)]
    compiled = strata.graph(f, *[t.clone() for t in there]).compile()
    want, got = f(x, y), compiled(*there)
    assert same(want, got) and same(x, there[0]) and same(y, there[1])
    # One tensor twice: operator by operator, in the graph's order.
    x, there = strata.randn(30, 5), [strata.empty(0)]
    there = x.to(DEVICE)
    assert same(f(x, x), compiled(there, there)) and same(x, there)


def test_an_optimisers_step_over_many_tensors():
    def trained(device, compiled):
        strata.manual_seed(0)
        params = [strata.randn(n, 3, device=device).requires_grad_() for n in (4, 4, 9, 17)]
        optimizer = strata.optim.AdamW(params, lr=0.01)

        def loss():
            return sum((p * p).sum() for p in params)

        def step():
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

        run = strata.compile(step) if compiled else step
        for _ in range(4):
            run()
        return params

    want, got = trained("cpu", False), trained(DEVICE, True)
    assert all(same(a, b) for a, b in zip(want, got))


def test_whole_operators_and_launches_in_one_graph():
    x, w = strata.randn(30, 50), strata.randn(50, 20)
    check(lambda x, w: F.relu(x @ w + 1).softmax(-1), x, w, grad=True)
    check(lambda x: x.sort(1)[0].exp() + x.cumsum(0), x)


def test_an_index_outside_is_told_by_operator_and_leaves_the_device_usable():
    x, i = strata.randn(5, 6, device=DEVICE), strata.zeros(5, 2, dtype=strata.int64, device=DEVICE)
    compiled = strata.graph(lambda x, i: x.gather(1, i).exp(), x, i).compile()
    assert compiled(x, i).shape == (5, 2)
    compiled(x, i + 9)
    with pytest.raises(RuntimeError, match="gather.*index out of range"):
        strata.accelerator.synchronize(DEVICE)
    assert same(compiled(x, i), x.cpu().gather(1, i.cpu()).exp())


def test_kernels_of_a_graph_are_one_program_and_equal_ones_are_shared():
    x = strata.randn(31, 41, device=DEVICE)

    def f(x):
        return (x * 1.375).exp().t().contiguous().cumsum(0) * 2.625 + x.sum() + x.var(1).sum()

    def known() -> tuple[int, int]:
        stats = strata.cache.stats(DEVICE)
        return stats["compiled"] + stats["loaded"], stats["modules"]

    before = known()
    c = strata.graph(f, x).compile()
    assert same(c(x), f(x.cpu()))
    after = known()
    assert after[0] >= before[0] + 3 and after[1] <= before[1] + 3  # the graph's kernels, the scan's, and eager's in `same`
    again = strata.graph(f, strata.randn(31, 41, device=DEVICE)).compile()
    assert same(again(x), f(x.cpu())) and known() == after
    assert "0 kernels compiled together" in again.explain()


def test_tensors_of_two_devices_run_operator_by_operator():
    x = strata.randn(4, 5, device=DEVICE)
    c = strata.graph(lambda x: (x + 1).to("null:1").exp(), x).compile()
    assert same(c(x), (x.cpu() + 1).exp()) and "operator by operator: its tensors lie on" in c.explain()


def test_the_second_device():
    other = strata.device("null:1")
    check(lambda x: F.dropout(x.softmax(-1), 0.5), strata.randn(20, 40), grad=True, device=other)


def test_other_queues():
    x = strata.randn(300, 40)
    f = strata.graph(lambda x: (x.sin() + 1).softmax(-1), x.to(DEVICE)).compile()
    there, stream = x.to(DEVICE), strata.Stream(DEVICE)
    stream.wait_stream(strata.accelerator.current_stream(DEVICE))
    with stream:
        made = f(there) * 2
    stream.synchronize()
    assert same(made, (x.sin() + 1).softmax(-1) * 2)
