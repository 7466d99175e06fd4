"""cross_entropy's backward in a graph: one operator for nll_loss_backward and log-softmax's derivative, with eager's bits."""

import itertools

import pytest
import strata
import strata.nn.functional as F

JOINED = "strata::_nll_log_softmax_backward"


def data(shape, dtype, ignored):
    x = (strata.randn(*shape) * 3).to(dtype).requires_grad_()
    classes, sizes = (shape[0], ()) if len(shape) == 1 else (shape[1], (shape[0], *shape[2:]))
    target = strata.randint(0, classes, sizes)
    if target.numel() > 2:
        target.view(-1)[1] = ignored
    return x, target, classes


def same(a, b):
    return bool(((a == b) & (a.signbit() == b.signbit()) | (a.isnan() & b.isnan())).all())


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16, strata.float16])
@pytest.mark.parametrize("shape", [(7, 5), (300,), (33, 1), (4, 6, 3, 5), (3, 3000), (0, 4)])
def test_has_eagers_bits(shape, dtype):
    strata.manual_seed(1)
    for reduction, weighted, ignored, scale in itertools.product(("mean", "sum", "none"), (False, True), (-100, 2), (1.0, 0.0, float("inf"))):
        x, target, classes = data(shape, dtype, ignored)
        weight = strata.rand(classes).to(dtype) if weighted else None

        def loss(x, target, weight=weight, reduction=reduction, ignored=ignored, scale=scale):
            return (F.cross_entropy(x, target, weight=weight, reduction=reduction, ignore_index=ignored) * scale).sum()

        graph = strata.graph(loss, x, target).compile()
        (eager,) = strata.autograd.grad(loss(x, target), x)
        (compiled,) = strata.autograd.grad(graph(x, target), x)
        assert same(eager, compiled), (reduction, weighted, ignored, scale)


def test_is_one_operator():
    x, target, _ = data((7, 5), strata.float32, -100)
    graph = strata.graph(F.cross_entropy, x, target).compile()
    assert JOINED in graph.explain() and "nll_loss_backward" not in graph.explain()


def test_not_where_the_gradient_has_other_readers():
    x, target, _ = data((7, 5), strata.float32, -100)

    def step(x, target):
        logs = F.log_softmax(x, 1)
        (by_logs, by_x) = strata.autograd.grad(F.nll_loss(logs, target), (logs, x))
        return by_logs, by_x

    graph = strata.graph(step, x, target).compile()
    assert JOINED not in graph.explain()
    assert all(same(a, b) for a, b in zip(step(x, target), graph(x, target), strict=True))


def test_not_along_another_dim():
    x, target, _ = data((5, 5), strata.float32, -100)
    graph = strata.graph(lambda x, t: F.nll_loss(F.log_softmax(x, 0), t), x, target).compile()
    assert JOINED not in graph.explain()
    (eager,) = strata.autograd.grad(F.nll_loss(F.log_softmax(x, 0), target), x)
    (compiled,) = strata.autograd.grad(graph(x, target), x)
    assert same(eager, compiled)


def test_a_target_outside_raises_as_in_eager():
    x, target, _ = data((7, 5), strata.float32, -100)
    graph = strata.graph(F.cross_entropy, x, target).compile()
    for function in (F.cross_entropy, graph):
        with pytest.raises(IndexError, match="Target 5 is out of bounds"):
            function(x, strata.full((7,), 5)).backward()
