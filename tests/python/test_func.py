"""strata.func: derivatives of functions, calls of modules with other tensors."""

import pytest
import strata
from strata import func, nn
from strata.testing import assert_close

X = strata.tensor([1.0, -2.0, 0.5])
Y = strata.tensor([0.3, 0.7, -1.0])


def cubes(x):
    return (x**3).sum()


def test_grad_and_its_forms():
    assert_close(func.grad(cubes)(X), 3 * X**2)
    assert_close(func.grad(func.grad(cubes, 0) and (lambda x: func.grad(cubes)(x).sum()))(X), 6 * X)
    a, b = func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(X, Y)
    assert_close((a, b), (Y, X))
    gradient, (value, aux) = func.grad_and_value(lambda x: (cubes(x), x * 2), has_aux=True)(X)
    assert_close((gradient, value, aux), (3 * X**2, cubes(X), X * 2))
    tree = func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": X, "b": Y})
    assert_close(tree, {"a": Y, "b": X})
    assert_close(func.grad(lambda x: Y.sum())(X), strata.zeros(3))
    assert not gradient.requires_grad and not X.requires_grad


def test_results_follow_what_they_came_from():
    outer = Y.clone().requires_grad_()
    gradient = func.grad(lambda x: (x**2 * outer).sum())(X)
    gradient.sum().backward()
    assert_close(outer.grad, 2 * X)


def test_vjp_jacrev_hessian():
    value, pull = func.vjp(lambda x, y: x * y, X, Y)
    assert_close(value, X * Y)
    assert_close(pull(strata.ones(3)), (Y, X))
    assert_close(func.jacrev(lambda x: x.sin())(X), strata.diag(X.cos()))
    assert_close(func.hessian(cubes)(X), strata.diag(6 * X))


def test_jvp_and_jacfwd():
    value, product = func.jvp(lambda x, y: x * y, (X, Y), (strata.ones(3), X))
    assert_close(value, X * Y)
    assert_close(product, Y + X * X)
    assert not value.requires_grad and not product.requires_grad
    value, product, aux = func.jvp(lambda x: ({"a": x.sin()}, 5), (X,), (Y,), has_aux=True)
    assert_close((value, product), ({"a": X.sin()}, {"a": X.cos() * Y}))
    assert aux == 5
    assert_close(func.jacfwd(lambda x: x.sin())(X), strata.diag(X.cos()))
    with pytest.raises(RuntimeError, match="same python structure"):
        func.jvp(cubes, (X,), (X, X))


def test_refusals():
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        func.grad(lambda x: x)(X)
    with pytest.raises(RuntimeError, match="argnum=1"):
        func.grad(cubes, argnums=1)(X)
    with pytest.raises(RuntimeError, match="valid options"):
        func.functionalize(cubes, remove="all")


def test_linearize():
    output, along = func.linearize(cubes, X)
    tangent = strata.ones_like(X)
    assert_close(output, cubes(X))
    assert_close(along(tangent), func.jvp(cubes, (X,), (tangent,))[1])
    assert_close(func.functionalize(cubes)(X), cubes(X))


def test_gradients_of_batches():
    x = X.clone().requires_grad_()
    y = x * x
    rows = strata.eye(len(X), dtype=X.dtype)
    (jacobian,) = strata.autograd.grad(y, x, rows, is_grads_batched=True)
    assert_close(jacobian, strata.diag(2 * X))


def test_functional_call():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    weight = strata.ones(2, 3).requires_grad_()
    before = net[0].weight
    x = strata.stack([X, Y])
    out = func.functional_call(net, {"0.weight": weight}, x)
    out.square().sum().backward()
    assert weight.grad is not None and before.grad is None and net[0].weight is before
    buffers = {"1.running_mean": strata.zeros(2)}
    func.functional_call(net, ({"0.weight": weight}, buffers), (x,))
    assert net[1].num_batches_tracked == 2 and buffers["1.running_mean"].abs().sum() > 0
    with pytest.raises(ValueError, match="multiple dictionaries"):
        func.functional_call(net, (buffers, buffers), x)
    with pytest.raises(RuntimeError, match="missing"):
        func.functional_call(net, {"0.weight": weight}, x, strict=True)
    with pytest.raises(AttributeError, match="nope"):
        func.functional_call(net, {"nope.weight": weight}, x)
    tied = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)])
    tied[1].weight = tied[0].weight
    tied.forward = lambda v: tied[1](tied[0](v))
    assert_close(
        func.functional_call(tied, {"0.weight": 2 * strata.eye(2)}, strata.ones(1, 2)), strata.full((1, 2), 4.0)
    )


def test_stacked_state():
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].shape == (3, 1, 2) and parameters["weight"].requires_grad and not buffers
    with pytest.raises(RuntimeError, match="same class"):
        func.stack_module_state([nn.Linear(2, 1), nn.ReLU()])


@pytest.mark.parametrize(
    ("name", "call", "error"),
    [
        ("grad", lambda i: func.grad(lambda x: (x * 1.0).sum())(i), RuntimeError),
        ("vjp", lambda i: func.vjp(lambda x, y: x * y, X, i), RuntimeError),
        ("jvp", lambda i: func.jvp(lambda x, y: x * y, (i, X), (X, X)), ValueError),
        ("jacrev", lambda i: func.jacrev(lambda x: x * 1.0)(i), RuntimeError),
        ("jacfwd", lambda i: func.jacfwd(lambda x: x * 1.0)(i), ValueError),
        ("hessian", lambda i: func.hessian(lambda x: (x * 1.0).sum())(i), ValueError),
    ],
)
def test_integers_have_no_derivatives(name, call, error):
    with pytest.raises(error, match=rf"{name}: Expected .* floating point or complex, but got strata.int64: convert"):
        call(strata.tensor([1, 2, 3]))


def test_jacfwd_takes_what_it_knows():
    with pytest.raises(TypeError, match="has_axu"):
        func.jacfwd(cubes, has_axu=True)
    with pytest.raises(RuntimeError, match="'error', 'different', or 'same'. Got none"):
        func.jacfwd(cubes, randomness="none")
    with pytest.raises(NotImplementedError, match="use randomness='same'"):
        func.jacfwd(cubes, randomness="different")
    jacobian, aux = func.jacfwd(lambda x: (x.sin(), 5), 0, True, randomness="same")(X)
    assert_close(jacobian, strata.diag(X.cos()))
    assert aux == 5


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", strata.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.count


def test_functional_call_gives_back_what_was_assigned():
    module, given = Counts(), {"count": strata.tensor(5.0)}
    before = given["count"]
    assert_close(func.functional_call(module, given, X), 6 * X)
    assert given["count"] == 6 and before == 5 and module.count == 0
    func.functional_call(module, (given,), X)  # several dictionaries are joined into a new one
    assert given["count"] == 6 and module.count == 0
    module.register_buffer("again", module.count)
    func.functional_call(module, given, X)
    assert set(given) == {"count"} and given["count"] == 7  # tied names are not added


def test_cotangents_are_a_tree_like_the_result():
    x = strata.ones(2)
    one, pull = func.vjp(lambda x: x * 2, x)
    both, pull_both = func.vjp(lambda x: (x * 2, {"a": x}), x)
    wrong = [(pull, [x]), (pull, (x,)), (pull, {"a": x}), (pull_both, [x, {"a": x}]), (pull_both, (x, {"b": x})), (pull_both, x)]
    for call, cotangents in wrong:
        with pytest.raises(RuntimeError, match="structure of cotangents to be the same"):
            call(cotangents)
    assert pull(x)[0].tolist() == [2, 2] and pull_both((x, {"a": x}))[0].tolist() == [3, 3]
    assert func.vjp(lambda x: x.sum(), x)[1](None)[0].tolist() == [1, 1]
    for primals, said in (([x], "to be a tuple"), (x, "to be a tuple"), ((), "at least one Tensor")):
        with pytest.raises(RuntimeError, match=said):
            func.jvp(lambda *a: x, primals, primals)


def test_jacobians_are_of_real_numbers():
    x, z = strata.ones(2), strata.ones(2, dtype=strata.complex64)
    for name in ("jacrev", "jacfwd", "hessian"):
        derive = getattr(func, name)
        with pytest.raises(RuntimeError, match=f"{name}: Expected all inputs to be real .* idx: 0"):
            derive(lambda z: z.abs().sum())(z)
        with pytest.raises(RuntimeError, match=f"{name}: Expected all inputs to be real .* idx: 1"):
            derive(lambda x, z: x * z.real)(x, z)
        with pytest.raises(RuntimeError, match="Expected all outputs to be real"):
            derive(lambda x: x * 1j)(x)
    for size in (0, -1):
        with pytest.raises(ValueError, match="`chunk_size` should be greater than 0"):
            func.jacrev(lambda x: x * x, chunk_size=size)
    assert func.jacrev(lambda x: x * x, chunk_size=1)(x).tolist() == [[2, 0], [0, 2]]


def test_a_gradient_that_stands_for_another_is_not_added_to_in_place():
    """Seeds and gradients of several layers are wrappers; what they wrap may be the caller's, or another gradient."""
    x = strata.tensor([1.0, 2.0, 3.0], dtype=strata.float64)
    hessian = func.hessian(lambda v: (100 * (v[1:] - v[:-1] ** 2) ** 2 + (1 - v[:-1]) ** 2).sum())(x)  # Rosenbrock's
    assert_close(hessian, strata.tensor([[402.0, -400, 0], [-400, 3802, -800], [0, -800, 200]], dtype=strata.float64))
    assert_close(func.hessian(lambda v: strata.trapezoid(v) ** 2)(x)[2], strata.tensor([0.5, 1, 0.5], dtype=strata.float64))
    _, pull = func.vjp(lambda v: v.t() + v.view(3), x)
    seeds = strata.eye(3)
    assert_close(func.vmap(pull)(seeds.double())[0], 2 * seeds.double())
    wide = seeds.double()
    func.vmap(pull)(wide)
    assert wide.equal(seeds.double())


@pytest.mark.parametrize(
    ("f", "x", "want"),
    [
        (lambda v: strata.where(v > 0, v.sqrt(), v), [-1.0, 1.0], [1.0, 0.5]),
        (lambda v: v.log().masked_fill(v <= 0, 0.0), [0.0, 2.0], [0.0, 0.5]),
        (lambda v: v.norm(), [0.0, 0.0], 0.0),
        (lambda v: strata.linalg.vector_norm(v, 3), [0.0, 0.0], 0.0),
        (lambda v: strata.linalg.vector_norm(strata.stack([v, v + 1]), dim=1), [0.0, 0.0], [0.0, 2**0.5]),
        (lambda v: v.std(), [1.0, 1.0], 0.0),
        (lambda v: nn.functional.normalize(v, dim=0, eps=0.5), [0.0, 0.0], [2.0, 2.0]),
        (lambda v: v ** strata.tensor([0.0, 2.0], dtype=strata.float64), [0.0, 3.0], [0.0, 6.0]),
        (lambda v: v.logit(0.1), [0.0, 0.5], [0.0, 4.0]),
        (lambda v: v.logit(), [-1.0, 0.5], [float("nan"), 4.0]),
    ],
)
def test_tangents_are_finite_where_the_branch_is(f, x, want):
    x = strata.tensor(x, dtype=strata.float64)
    got = func.jvp(f, (x,), (strata.ones_like(x),))[1]
    assert_close(got, strata.tensor(want, dtype=strata.float64), equal_nan=True)
