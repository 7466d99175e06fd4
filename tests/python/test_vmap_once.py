"""vmap calls its function once: derivatives inside and outside of it, levels in levels, writes, draws, what it refuses."""

import pytest
import strata
import strata.nn.functional as F
from strata import func, nn
from strata.testing import assert_close

strata.manual_seed(3)
X, W, Y = strata.randn(6, 4), strata.randn(4), strata.randn(6)


def loop(f, *columns):
    found = [f(*(c[i] for c in columns)) for i in range(len(columns[0]))]
    if isinstance(found[0], tuple):
        return tuple(strata.stack(list(column)) for column in zip(*found, strict=True))
    return strata.stack(found)


def test_runs_once():
    seen = []

    def f(a):
        seen.append(a.shape)
        return a * 2

    assert_close(func.vmap(f)(X), X * 2)
    assert seen == [strata.Size([4])]
    func.vmap(f, chunk_size=4)(X)
    assert len(seen) == 3


FUNCTIONS = {
    "per sample": lambda a, y: func.grad(lambda w: (a @ w - y) ** 2)(W),
    "value too": lambda a, y: func.grad_and_value(lambda w: (a @ w - y) ** 2)(W),
    "jacrev": lambda a, y: func.jacrev(lambda v: v.sin() * v.sum() * y)(a),
    "jacfwd": lambda a, y: func.jacfwd(lambda v: v.sin() * v.sum() * y)(a),
    "hessian": lambda a, y: func.hessian(lambda v: (v.sin() * v.prod()).sum() * y)(a),
    "jvp": lambda a, y: func.jvp(lambda v: v.sin() * v, (a,), (a * y,)),
    "vjp": lambda a, y: func.vjp(lambda v: v.sin() * v, a)[1](a * y)[0],
    "second": lambda a, y: func.grad(func.grad(lambda v: v.sin() * v**3))(y),
    "levels": lambda a, y: func.vmap(lambda b: (a * b).sum() * y)(X),
    "levels and gradients": lambda a, y: func.grad(lambda v: func.vmap(lambda b: (v * b).sin().sum())(X).sum())(a),
    "inner autograd": lambda a, y: strata.autograd.grad((a.detach().requires_grad_() ** 2).sum() * 0 + (b := a.detach().requires_grad_()).sin().sum(), b)[0],
    "writes": lambda a, y: a.clone().add_(1).mul_(a),
    "writes to views": lambda a, y: (b := a.clone(), b[1:3].mul_(y), b[0].fill_(2))[0],
    "places": lambda a, y: a[(y > 0).long()] + W[(y > 0).long()],
    "softmax": lambda a, y: F.log_softmax(a.view(2, 2), -1).logsumexp(0),
    "sort": lambda a, y: a.sort(descending=True)[0].cumsum(0),
    "joined": lambda a, y: strata.cat([a, W, y[None]]),
    "promotion": lambda a, y: y * strata.ones(2, dtype=strata.float64),
    "promotion of numbers": lambda a, y: y * strata.tensor(2.0, dtype=strata.float64),
    "normalised": lambda a, y: F.layer_norm(a[None].expand(3, 4), (4,), W, W),
    "products": lambda a, y: strata.einsum("i,j->ij", a, W) @ a,
    "factors": lambda a, y: strata.linalg.cholesky(a[:, None] * a + strata.eye(4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_the_loop(name):
    f = FUNCTIONS[name]
    assert_close(func.vmap(f)(X, Y), loop(f, X, Y), rtol=1e-5, atol=1e-5)
    assert_close(func.vmap(f, in_dims=(1, 0), chunk_size=4)(X.t().contiguous(), Y), loop(f, X, Y), rtol=1e-5, atol=1e-5)


def model():
    m = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 3))
    return m, {name: p.detach() for name, p in m.named_parameters()}


def test_gradients_of_samples():
    m, parameters = model()
    x, y = strata.randn(5, 2, 6, 6), strata.randint(0, 3, (5,))

    def loss(p, x, y):
        return F.cross_entropy(func.functional_call(m, p, (x[None],)), y[None])

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for i in range(5):
        for name, wanted in func.grad(loss)(parameters, x[i], y[i]).items():
            assert_close(found[name][i], wanted, rtol=1e-4, atol=1e-5)


def test_ensembles():
    models = [model()[0] for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    x = strata.randn(4, 2, 6, 6)
    call = lambda p, b, x: func.functional_call(models[0], (p, b), (x,))  # noqa: E731
    assert_close(func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x), strata.stack([m(x) for m in models]), rtol=1e-4, atol=1e-5)
    loss = func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x).sum()
    loss.backward()
    models[1](x).sum().backward()
    for name, p in models[1].named_parameters():
        assert_close(parameters[name].grad[1], p.grad, rtol=1e-4, atol=1e-4)


def test_history_outside_stays():
    w, x = W.clone().requires_grad_(), X.clone().requires_grad_()
    strata.autograd.grad(func.vmap(lambda a: (a * w).sin().sum())(X).sum(), w)
    through = func.vmap(func.grad(lambda w, a: ((a * w) ** 3).sum()), in_dims=(None, 0))(w, X)
    (found,) = strata.autograd.grad(through.sum(), w)
    assert_close(found, (6 * X**3 * W).sum(0))
    penalty = func.vmap(func.grad(lambda a: (a**3).sum()))(x)
    (found,) = strata.autograd.grad(penalty.sum(), x)
    assert_close(found, 6 * X)
    value = func.vmap(func.grad_and_value(lambda w, a: ((a * w) ** 3).sum()), in_dims=(None, 0))(W, X)[1]
    assert not value.requires_grad


def test_backward_passes_side_by_side():
    w = W.clone().requires_grad_()
    made = w.sin() * w.sum()
    (rows,) = func.vmap(lambda v: strata.autograd.grad(made, w, v, retain_graph=True))(strata.eye(4))
    assert_close(rows, func.jacrev(lambda v: v.sin() * v.sum())(W))


def test_draws():
    for f in (lambda a: F.dropout(a, 0.5), lambda a: a + strata.rand(4), lambda a: strata.rand_like(a)):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            func.vmap(f)(X)
        same, other = func.vmap(f, randomness="same")(strata.ones(6, 4)), func.vmap(f, randomness="different")(strata.ones(6, 4))
        assert (same == same[0]).all() and not (other == other[0]).all()


def test_what_cannot_be_done_at_once_goes_element_by_element():
    calls = []

    def decides(a):
        calls.append(1)
        return a * 2 if a.sum() > 0 else -a

    assert_close(func.vmap(decides)(X), strata.where(X.sum(1, keepdim=True) > 0, X * 2, -X))
    assert len(calls) == 7
    assert_close(func.vmap(lambda a: strata.zeros(4).add_(a))(X), X)
    with pytest.raises(RuntimeError, match="equal size"):
        func.vmap(lambda a: a[a > 0])(X)
    with pytest.raises(ValueError, match="out_dim is None"):
        func.vmap(lambda a: a, out_dims=None)(X)

    def writes_first(a):
        a.mul_(2)
        return a * 2 if a.sum() > 0 else -a

    with pytest.raises(RuntimeError, match="item"):  # each element would be doubled again
        func.vmap(writes_first)(X.clone())
    held = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="written its arguments before"):
        func.vmap(lambda a, c: (c.add_(1), func.grad(lambda v: v.exp().sum())(a))[1])(held, X.clone())
    assert func.vmap(lambda a: a * 2)(strata.ones(0, 3)).shape == (0, 3)


class Square(strata.autograd.Function):
    """With a derivative that is not the square's."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] * g


def in_place(a):
    b = a * 1
    b[0].fill_(2.0)
    return (b * a).sum()


OUTSIDE = {
    "exp": lambda a: func.grad(lambda v: v.exp().sum())(a),
    "tanh": lambda a: func.grad(lambda v: v.tanh().sum())(a),
    "jvp": lambda a: func.jvp(strata.exp, (a,), (strata.ones(4),))[1],
    "vjp": lambda a: func.vjp(strata.sigmoid, a)[1](strata.ones(4))[0],
    "jacrev": lambda a: func.jacrev(lambda v: v.softmax(0))(a),
    "hessian": lambda a: func.hessian(lambda v: F.layer_norm(v, (4,)).exp().sum())(a),
    "Function": lambda a: (Square.apply(a) + a).sum(),
    "gradient of a Function": lambda a: func.grad(lambda v: (Square.apply(v) * v).sum())(a),
    "written": lambda a: func.grad(in_place)(a),
    "norms": lambda a: strata.linalg.svdvals(a.reshape(2, 2)),
    "eigenvalues": lambda a: strata.linalg.eigvals(a.reshape(2, 2)).abs(),
    "levels": lambda a: func.vmap(func.grad(strata.exp))(a),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_is_differentiated_outside(name):
    f = OUTSIDE[name]
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    (found,) = strata.autograd.grad((func.vmap(f)(x) ** 2).sum(), x)
    (wanted,) = strata.autograd.grad((loop(f, y) ** 2).sum(), y)
    assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert_close(func.jacrev(lambda t: func.vmap(f)(t).sum())(X), func.jacrev(lambda t: loop(f, t).sum())(X), rtol=1e-4, atol=1e-4)


def test_operators_of_the_users():
    @strata.library.custom_op("vmap_once::twice", mutates_args=())
    def twice(x: strata.Tensor) -> strata.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return strata.empty_like(x)

    assert_close(func.vmap(twice)(X), X * 2)


def test_numbers_have_derivatives():
    assert_close(func.jacrev(strata.sin)(Y[0]), Y[0].cos())
    assert_close(func.vmap(func.hessian(strata.sin))(Y), -Y.sin())


def test_hooks_see_gradients():
    layer = nn.Linear(4, 2)
    layer.register_full_backward_hook(lambda *a: None)
    assert_close(func.vmap(layer)(X), layer(X), rtol=1e-5, atol=1e-5)

    def hooked(a):
        b = a.sin()
        b.register_hook(lambda g: strata.ones(4) * 5)
        return b.sum()

    assert_close(func.vmap(func.grad(hooked))(X), 5 * X.cos())


def test_shows_itself():
    texts = []
    func.vmap(lambda a: (texts.append(repr(a)), a)[1])(strata.ones(2, 1))
    assert texts[0].startswith("BatchedTensor(of 2")
