"""make_fx: operators of a function with its own arguments, gradients among them."""

import pytest
import strata
from strata import nn
from strata.fx.experimental.proxy_tensor import make_fx


def same(a, b):
    return a.dtype == b.dtype and strata.equal(a, b)


def test_arguments_are_called_as_pytorch_calls_them():
    gm = make_fx(lambda x, y: (strata.sin(x) * y + x.sum(), [y]))(strata.ones(2), strata.ones(2))
    assert gm.code == """


def forward(self, x_1, y_1):
    sin = strata.ops.aten.sin.default(x_1)
    mul = strata.ops.aten.mul.Tensor(sin, y_1);  sin = None
    sum_1 = strata.ops.aten.sum.default(x_1);  x_1 = None
    add = strata.ops.aten.add.Tensor(mul, sum_1);  mul = sum_1 = None
    return (add, [y_1])
    """
    x, y = strata.randn(2), strata.randn(2)
    got = gm(x, y)
    assert same(got[0], x.sin() * y + x.sum()) and got[1][0] is y


def test_nests_and_constants_are_arguments():
    def f(d, k, pair):
        return {"s": d["a"] * k + pair[0], "p": pair}

    def given():
        return {"a": strata.randn(3), "b": [strata.randn(2)]}, 3, (strata.randn(3), 1.5)

    gm = make_fx(f)(*given())
    args = given()
    got, expected = gm(*args), f(*args)
    assert same(got["s"], expected["s"]) and got["p"][0] is args[2][0] and got["p"][1] == 1.5
    assert [n.name for n in gm.graph.find_nodes(op="placeholder")] == ["d_1", "d_2", "k_1", "pair_1", "pair_2"]


def test_gradients_are_operators():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def loss_and_gradients(x):
        loss = net(x).square().mean()
        return loss, *strata.autograd.grad(loss, list(net.parameters()))

    gm = make_fx(loss_and_gradients)(strata.randn(5, 3))
    x = strata.randn(5, 3)
    for a, b in zip(gm(x), loss_and_gradients(x)):
        assert same(a, b)
    assert {*gm.state_dict()} == {f"net.{name}" for name in net.state_dict()}


def test_what_is_not_there_is_refused():
    with pytest.raises(NotImplementedError, match="'symbolic' is not provided"):
        make_fx(strata.sin, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="decomposition_table is not provided"):
        make_fx(strata.sin, {strata.ops.aten.sin.default: None})
