"""Operators of a program's own inside of compiled functions: one node each, whatever their Python reads or writes."""

import pytest
import strata as torch
from strata import library

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def npsin():
    @library.custom_op("compiled_ops::npsin", mutates_args=())
    def npsin(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @npsin.register_fake
    def _(x):
        return torch.empty_like(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()

    npsin.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    return npsin


def test_one_graph_with_its_gradient(npsin):
    x = torch.randn(5, requires_grad=True)
    compiled = torch.compile(lambda v: npsin(v * 2) + 1, fullgraph=True)
    y = compiled(x)
    y.sum().backward()
    assert torch.allclose(y, (x * 2).sin() + 1) and torch.allclose(x.grad, 2 * (x * 2).cos())
    z = torch.randn(5)
    assert torch.allclose(compiled(z), (z * 2).sin() + 1)
    assert torch.allclose(torch.compile(npsin, fullgraph=True)(z), z.sin())


def test_one_that_writes_and_returns_nothing():
    @library.custom_op("compiled_ops::sin_into", mutates_args={"output"}, device_types="cpu")
    def sin_into(source: torch.Tensor, output: torch.Tensor) -> None:
        np.sin(source.numpy(), out=output.numpy())

    @torch.compile(fullgraph=True)
    def f(x):
        out = torch.empty(3)
        sin_into(x, out)
        return out * 2

    x = torch.randn(3)
    for v in (x, x + 1):
        assert torch.allclose(f(v), v.sin() * 2)
    assert set(library.opcheck(sin_into, (x, torch.empty(3))).values()) == {"SUCCESS"}


def test_by_their_name():
    lib = library.Library("compiled_ops", "FRAGMENT")
    library.define("compiled_ops::twice", "(Tensor x) -> Tensor", lib=lib)
    library.impl("compiled_ops::twice", "cpu", lambda x: torch.from_numpy(x.numpy() * 2), lib=lib)
    library.register_fake("compiled_ops::twice", torch.empty_like, lib=lib)
    compiled = torch.compile(lambda x: torch.ops.compiled_ops.twice(x) + torch.ops.aten.relu(x), fullgraph=True)
    assert compiled(torch.tensor([1.0, -1.0])).tolist() == [3.0, -2.0]
    with pytest.raises(AttributeError, match="no operator 'nothing'"):
        torch.compile(lambda x: torch.ops.compiled_ops.nothing(x))(torch.ones(1))


def test_without_a_kernel_for_shapes_the_graph_breaks():
    @library.custom_op("compiled_ops::opaque", mutates_args=(), device_types="cpu")
    def opaque(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() + 1)

    assert torch.compile(lambda x: opaque(x) * 2)(torch.ones(2)).tolist() == [4.0, 4.0]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(lambda x: opaque(x) * 2, fullgraph=True)(torch.ones(2))


def test_vmap_needs_no_rule(npsin):
    calls = []

    @npsin.register_vmap
    def rule(info, in_dims, x):
        calls.append(1)

    x = torch.randn(2, 3)
    assert torch.allclose(torch.vmap(npsin)(x), x.sin()) and not calls


def test_other_sizes(npsin):
    compiled = torch.compile(lambda v: npsin(v * 2).sum(0), fullgraph=True)
    for n in (3, 4, 5, 4):
        x = torch.randn(n, 2, requires_grad=True)
        y = compiled(x)
        y.sum().backward()
        assert torch.allclose(y, (x * 2).sin().sum(0)) and torch.allclose(x.grad, 2 * (x * 2).cos())


def test_in_graphs(npsin):
    x, y = torch.randn(3), torch.randn(3)
    assert torch.allclose(torch.graph(lambda v: npsin(v) + 1, x).compile()(y), y.sin() + 1)
