"""Operators that a program adds as an expression: bits, gradients, graphs, devices, errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import strata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "device"))
import devices  # noqa: E402

swish = strata.library.expression(
    "exprtest::swish(Tensor self, float beta=1.0) -> Tensor",
    "self * sigmoid(beta * self)",
    grad={"self": "s = sigmoid(beta * self)\nresult = grad * (s + beta * self * s * (1 - s))"},
    promote="float",
)
mix = strata.library.expression(
    "exprtest::mix(Tensor a, Tensor b, *, Scalar t=0.5) -> Tensor",
    "a + (b - a) * t",
    grad={"a": "grad * (1 - t)", "b": "grad * t"},
    dtypes=(strata.float32, strata.float64, strata.int64, strata.complex64),
)


def composed(x, beta=1.0):
    return x * strata.sigmoid(beta * x)


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64])
def test_it_has_the_bits_of_its_operators(dtype):
    x = strata.randn(33, 70, dtype=dtype)
    for t in (x, x.t(), x[:, ::3], x[:0], x[0, 0], x.expand(2, 33, 70)):
        assert swish(t).equal(composed(t)) and swish(t, 0.5).equal(composed(t, 0.5))
        assert swish(t).stride() == composed(t).stride()


def test_half_floats_round_once_and_integers_are_promoted():
    x = strata.randn(1000)
    for dtype in (strata.float16, strata.bfloat16):
        t = x.to(dtype)
        assert swish(t).dtype == dtype and swish(t).equal(composed(t.float()).to(dtype))
    assert swish(strata.arange(5)).equal(composed(strata.arange(5.0)))
    a, b = strata.arange(6).reshape(2, 3), strata.arange(3)
    assert mix(a, b, t=2).equal(a + (b - a) * 2) and mix(a, b, t=2).dtype == strata.int64
    assert mix(strata.ones(2, 1), strata.zeros(3)).equal(strata.full((2, 3), 0.5))
    z = strata.randn(5, dtype=strata.complex64)
    assert strata.allclose(mix(z, z * 2), z * 1.5)


def test_its_gradient_is_the_derivative():
    x = strata.randn(4, 5, dtype=strata.float64, requires_grad=True)
    b = strata.randn(5, dtype=strata.float64, requires_grad=True)
    assert strata.autograd.gradcheck(lambda t: swish(t, 1.3), (x,))
    assert strata.autograd.gradcheck(lambda a, c: mix(a, c, t=0.3), (x, b))
    out = mix(x, b.detach())
    out.sum().backward()
    assert x.grad.equal(strata.full((4, 5), 0.5, dtype=strata.float64)) and b.grad is None
    first = strata.autograd.grad(swish(x).sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match=r"exprtest::swish_grad_self.*no autograd formula"):
        first.sum().backward()


def test_it_is_a_part_of_a_fused_kernel():
    x = strata.randn(1000, requires_grad=True)

    def f(t):
        return swish(t.sin() + 1, 0.7).cos() * 2

    compiled = strata.graph(f, x).compile()
    want = f(x)
    got = compiled(x)
    assert got.equal(want)
    g = strata.randn(1000)
    assert strata.autograd.grad(got, x, g)[0].equal(strata.autograd.grad(want, x, g)[0])
    assert "exprtest::swish" in compiled.explain() and "run_1" not in compiled.source()  # one kernel forward, one backward


def test_a_saved_graph_has_it(tmp_path):
    x = strata.randn(8)
    strata.graph(lambda t: swish(t) + 1, x).save(tmp_path / "g")
    assert strata.load_graph(tmp_path / "g").compile()(x).equal(swish(x) + 1)


def test_devices_run_it():
    for there in devices.present():
        strata.fallback.reset()
        x = strata.randn(7, 9)
        t = x.to(there).requires_grad_()
        y = swish(t, 1.5)
        assert y.device.type == there.type and y.detach().cpu().equal(swish(x, 1.5))
        y.sum().backward()
        own = x.clone().requires_grad_()
        swish(own, 1.5).sum().backward()
        assert t.grad.cpu().equal(own.grad)
        assert not [row.op for row in strata.fallback.rows() if "exprtest" in row.op]


def test_shapes_alone_and_wrong_calls():
    assert swish(strata.empty(3, 4, device="meta")).shape == (3, 4)
    assert mix(strata.empty(3, 1, device="meta"), strata.empty(4, device="meta")).shape == (3, 4)
    for wrong in ((strata.ones(2), strata.ones(3)), (strata.ones(2), None), ("a", strata.ones(2))):
        with pytest.raises((RuntimeError, TypeError)):
            mix(*wrong)
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        mix(strata.ones(2, dtype=strata.float16), strata.ones(2, dtype=strata.float16))


@pytest.mark.parametrize(
    ("schema", "text", "words"),
    [
        ("exprtest::e1(Tensor self) -> Tensor", "self *", "expression: exprtest::e1: .*expected a value"),
        ("exprtest::e2(Tensor self) -> Tensor", "self * other", "other"),
        ("exprtest::e3(Tensor[] self) -> Tensor", "self", "neither optional, a list nor written"),
        ("exprtest::e4(Tensor(a!) self) -> Tensor(a!)", "self", "neither optional, a list nor written"),
        ("exprtest::e5(int n) -> Tensor", "n", "expected an argument that is a Tensor"),
        ("exprtest::e6(Tensor self) -> Tensor[]", "self", "one result, a new Tensor"),
        ("exprtest::e7(Tensor self) -> Tensor", "sum(self)", "sum"),
        ("exprtest::e8(Tensor self", "self", "schema|expected"),
        ("exprtest::e9(Tensor self) -> Tensor", "", "empty text"),
    ],
)
def test_what_makes_no_sense_is_refused(schema, text, words):
    with pytest.raises(ValueError, match=words):
        strata.library.expression(schema, text)
    name = schema.split("(")[0].split("::")[1]
    assert not hasattr(strata.ops.exprtest, name)


def test_wrong_derivatives_are_refused_and_leave_nothing_behind():
    lib = strata.library.Library("exprtest", "FRAGMENT")
    for grad, words in (
        ({"other": "grad"}, "expected an argument of .* that is a Tensor"),
        ({"self": "grad * nothing"}, "nothing"),
    ):
        with pytest.raises(ValueError, match=words):
            lib.expression("half(Tensor self) -> Tensor", "self / 2", grad=grad)
        assert not hasattr(strata.ops.exprtest, "half")
    assert lib.expression("half(Tensor self) -> Tensor", "self / 2", grad={"self": "grad / 2"})(strata.ones(1)).item() == 0.5
    with pytest.raises(RuntimeError):
        lib.expression("half(Tensor self) -> Tensor", "self / 2")
    lib._destroy()
    assert not hasattr(strata.ops.exprtest, "half") and not hasattr(strata.ops.exprtest, "half_grad_self")
