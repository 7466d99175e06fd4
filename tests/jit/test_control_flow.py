"""cond and while_loop: eagerly, in graphs, compiled, with gradients, and what they refuse."""

from __future__ import annotations

import pytest
import strata
from strata import _C, nn


def branch(x, p):
    return strata.cond(p, lambda x: (x.sin() + 1, x), lambda x: (x.cos(), x * 2), (x,))


def same(a, b) -> bool:
    return all(strata.equal(x, y) for x, y in zip(a, b, strict=True))


TRUE, FALSE = strata.tensor(True), strata.tensor(False)


def test_a_graph_takes_the_branch_of_each_call() -> None:
    x = strata.randn(5)
    for example in (TRUE, FALSE):
        g = strata.graph(branch, x, example)
        assert [n.op for n in g.nodes if n.op != "input"] == ["if"]
        for p in (TRUE, FALSE):
            for run in (g, g.compile()):
                y = strata.randn(5)
                assert same(run(y, p), branch(y, p))
    text = str(g)
    captured = _C._graph_captured(g._graph)
    assert _C._graph_text(_C._graph_parse(text, captured)) == text


def test_what_a_branch_gives_is_memory_of_its_own() -> None:
    x = strata.randn(5)
    compiled = strata.graph(branch, x, TRUE).compile()
    before = x.clone()
    _, copied = compiled(x, TRUE)
    copied.zero_()
    assert strata.equal(x, before)


def test_branches_may_be_nested_and_draw() -> None:
    def f(x, p, q):
        def inner(x):
            return strata.cond(q, lambda x: x + strata.rand(4), lambda x: x.t().contiguous().t(), (x,))

        return strata.cond(p, inner, lambda x: -x, (x,)) * 2

    x = strata.randn(3, 4)
    compiled = strata.graph(f, x, strata.tensor(True), strata.tensor(True)).compile()
    for p in (TRUE, FALSE):
        for q in (TRUE, FALSE):
            strata.manual_seed(3)
            expected = f(x, p, q)
            after = strata.rand(2)
            strata.manual_seed(3)
            assert strata.equal(compiled(x, p, q), expected)
            assert strata.equal(strata.rand(2), after)


def test_a_loop_turns_as_often_as_its_condition_holds() -> None:
    def f(x, limit):
        return strata.while_loop(lambda i, x: (i < 50) & (x.sum() < limit), lambda i, x: (i + 1, x * 1.5 + limit * 0), (strata.zeros(()), x))

    x = strata.ones(4).t()
    g = strata.graph(f, x, strata.tensor(100.0))
    for limit in (-1.0, 10.0, 1000.0, 1e30):
        t = strata.tensor(limit)
        for run in (g, g.compile()):
            assert same(run(x, t), f(x, t))


def test_gradients_of_a_branch_are_eagers() -> None:
    layer = nn.Linear(5, 5)

    def loss(x, p):
        return strata.cond(p, lambda x: layer(x).relu(), lambda x: x * x, (x,)).sum()

    def gradients(f, x, p):
        x.grad = layer.weight.grad = None
        f(x, p).backward()
        return x.grad, layer.weight.grad

    x = strata.randn(2, 5, requires_grad=True)
    compiled = strata.graph(loss, x, FALSE).compile()
    for p in (TRUE, FALSE):
        by_x, by_weight = gradients(loss, x, p)
        for _ in range(2):
            got = gradients(compiled, x, p)
            assert strata.equal(got[0], by_x)
            # A branch that does not use the weight gives zeros: which one is taken is not known when the graph is made.
            assert strata.equal(got[1], strata.zeros(5, 5) if by_weight is None else by_weight)


def test_gradients_of_a_loop_are_eagers_and_not_a_graphs() -> None:
    def f(x):
        return strata.while_loop(lambda x: x.sum() < 100, lambda x: (x * 2,), (x,))[0].sum()

    x = strata.ones(3, requires_grad=True)
    f(x).backward()
    assert x.grad.tolist() == [64.0] * 3
    with pytest.raises(NotImplementedError, match="gradient of a loop in a graph"):
        strata.graph(f, x)
    with strata.no_grad():
        assert strata.equal(strata.graph(f, x)(x), f(x))


def test_python_values_choose_as_python_does() -> None:
    x = strata.ones(2)
    assert strata.cond(True, lambda x: x + 1, lambda x: "no tensor", (x,)).tolist() == [2, 2]
    assert strata.cond(x.sum() > 5, lambda x: x, lambda x: "no tensor", (x,)) == "no tensor"
    assert strata.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,)) == (3,)
    from strata._higher_order_ops.while_loop import while_loop

    assert while_loop is strata.while_loop is strata._higher_order_ops.while_loop
    assert strata.ops.higher_order.cond(TRUE, lambda: 1, lambda: 2, ()) == 1


def refused(kind, match, f, *args) -> None:
    with pytest.raises(kind, match=match):
        strata.graph(f, *args)
    assert _C._recording() is None
    strata.graph(lambda x: x + 1, args[0])  # the next recording is as ever


def test_what_branches_may_not_do() -> None:
    x = strata.ones(2)
    refused(ValueError, r"one dtype, device and shape, got f32\[2\] of true_fn and f32\[\] of false_fn as result 0",
            lambda x: strata.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), (x,)), x)  # fmt: skip
    refused(RuntimeError, "results of one form", lambda x: strata.cond(x.sum() > 0, lambda x: x, lambda x: (x,), (x,)), x)
    refused(RuntimeError, "made outside of the function of cond", lambda x: strata.cond(x.sum() > 0, lambda x: x.add_(1), lambda x: x + 1, (x,)), x)
    refused(RuntimeError, "expected tensors .* got int", lambda x: strata.cond(x.sum() > 0, lambda x: 1, lambda x: 2, (x,)), x)
    refused(RuntimeError, "reads the values of a tensor", lambda x: strata.cond(x.sum() > 0, lambda x: x * x.sum().item(), lambda x: x, (x,)), x)
    kept = []
    refused(RuntimeError, "used outside of it; return it",
            lambda x: strata.cond(x.sum() > 0, lambda x: kept.append(x + 1) or x * 1, lambda x: x * 1, (x,)) + kept[0], x)  # fmt: skip
    refused(RuntimeError, "boolean scalar tensor", lambda x: strata.while_loop(lambda x: 1, lambda x: (x,), (x,)), x)
    refused(RuntimeError, "the loop would never end", lambda x: strata.while_loop(lambda x: True, lambda x: (x,), (x,)), x)
    refused(ValueError, "expected body_fn to give what it is given", lambda x: strata.while_loop(lambda x: x.sum() < 3, lambda x: (x.double(),), (x,)), x)
    refused(RuntimeError, "a tuple of 1", lambda x: strata.while_loop(lambda x: x.sum() < 3, lambda x: (x, x), (x,)), x)
    for pred, operands in (("yes", (x,)), (x, (x,)), (TRUE, x), (TRUE, (1,))):
        with pytest.raises(RuntimeError):
            strata.cond(pred, lambda *a: a, lambda *a: a, operands)


def test_running_statistics_move_in_the_branch_that_is_taken() -> None:
    norm = nn.BatchNorm1d(3)

    def f(x, p):
        return strata.cond(p, lambda x: nn.functional.batch_norm(x, norm.running_mean, norm.running_var, training=True), lambda x: x * 2, (x,))

    x = strata.randn(4, 3)
    with strata.no_grad():
        g = strata.graph(f, x, FALSE)
        compiled = g.compile()
        before = norm.running_mean.clone()
        compiled(x, FALSE)
        assert strata.equal(norm.running_mean, before)
        compiled(x, TRUE)
        assert not strata.equal(norm.running_mean, before)


def test_a_copy_of_running_statistics_stays_a_copy() -> None:
    def f(x, mean, var):
        mean, var = mean.clone(), var.clone()
        return nn.functional.batch_norm(x, mean, var, training=True), mean * 1

    x, mean, var = strata.randn(4, 3), strata.zeros(3), strata.ones(3)
    expected = f(x, mean, var)
    assert same(strata.graph(f, x, mean, var).compile()(x, mean, var), expected)
    assert mean.tolist() == [0, 0, 0]
