"""A backward from some results of a compiled graph alone: eager's bits, and no work for what got no gradient."""

from __future__ import annotations

import pytest
import strata

F = strata.nn.functional
inf = float("inf")


class Twice(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h


class Constant(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        return (x * x).sum()

    @staticmethod
    def backward(ctx, g):
        return ctx.saved_tensors[0]


class Curved(strata.autograd.Function):
    """Of the gradients that it gets no linear function."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, g, h):
        return strata.zeros(4, 4) + h * strata.exp(-g), strata.where(g >= 0, h, -h) + strata.ones_like(g)


class Adding(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        r = g * 1
        r.add_(h)
        return r


def infinite(x, y):
    return x * inf, y * x, (x + y).sum()


def parts(x, y):
    a, b = (x @ y).chunk(2)
    c, d = x.unbind(1)[:2]
    return a * inf, b.exp() * c[0], d.sigmoid()


def drawn(x, y):
    return F.dropout(x * y, 0.5) * inf, F.dropout(x, 0.5), x.sin() * y


def layers(x, y):
    z = F.layer_norm(x @ y, (4,))
    return z * inf, F.cross_entropy(z, strata.tensor([0, 1, 2, 3])), z.t().softmax(0), y.mean()


def turned(x, y):
    return x.t().contiguous() * inf, (x.t() * y).reshape(-1), (x * 3).sin()


def two(x, y):
    first = strata.linalg.slogdet(x @ x.t() + y @ y.t())
    values, vectors = strata.linalg.eigh(x + x.t())
    return first.logabsdet, values * 2, vectors.abs() * y, strata.var_mean(x, 1)[0], x.norm() * inf


def branches(x, y):
    z = strata.cond(x.sum() > 0, lambda a, b: (a * b, b.sin()), lambda a, b: (a - b, b.cos()), (x, y))
    return z[0] * 2, z[1] * 3, x * inf


def given(x, y):
    a, b = Twice.apply(x, y)
    return a * 2, b * 3, x.tanh()


def curved(x, y):
    a, b = Curved.apply(x, y)
    c = Curved.apply(x * inf, y)[0]
    return a, b, c, x.sin()


def adding(x, y):
    return *Adding.apply(x), y * x


def written(x, y):
    y.mul_(2)
    return x * y, x * inf, (x * x).sum()


def subsets(count):
    return [[k for k in range(count) if chosen >> k & 1] for chosen in range(1, 1 << count)]


def gradients(f, ends, data, needs, seed):
    leaves = [t.clone().requires_grad_(n) for t, n in zip(data, needs, strict=True)]
    strata.manual_seed(seed)
    results = f(*leaves)
    those = [leaf for leaf, n in zip(leaves, needs, strict=True) if n]
    if not any(results[k].requires_grad for k in ends):
        return None
    roots = [results[k] for k in ends if results[k].requires_grad]
    return strata.autograd.grad(roots, those, [strata.ones_like(t) for t in roots], allow_unused=True)


def same(a, b):
    return (a is None) == (b is None) and (a is None or a.stride() == b.stride() and a.detach().numpy().tobytes() == b.detach().numpy().tobytes())


@pytest.mark.parametrize("f", [infinite, parts, drawn, layers, turned, two, branches, given, curved, adding, written])
def test_eagers_gradients(f):
    data = [strata.randn(4, 4) for _ in range(2)]
    data[0][1, 1] = -0.0
    needs = (True, f is not written)
    cf = strata.graph(f, *[t.clone().requires_grad_(n) for t, n in zip(data, needs, strict=True)]).compile()
    for ends in subsets(len(f(*[t.clone() for t in data]))):
        for seed in (1, 2):
            wanted, found = (gradients(g, ends, data, needs, seed) for g in (f, cf))
            assert (wanted is None) == (found is None), ends
            for i, (a, b) in enumerate(zip(wanted or (), found or (), strict=True)):
                assert same(a, b), (ends, i, a, b)


def test_what_no_backward_needs_may_be_written_before_it():
    x, y, z = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4), strata.randn(4, 4)

    def f(x, y, z):
        return x * y, (x + z).sum()

    cf = strata.graph(f, x, y, z).compile()
    found = []
    for g in (f, cf):
        given_z = z.clone()
        results = g(x, y, given_z)
        given_z.zero_()
        found.append(strata.autograd.grad(results[1], x)[0])
    assert same(*found)


def test_the_forward_does_not_run_again():
    x, w = strata.randn(8, 8, requires_grad=True), strata.randn(8, 8, requires_grad=True)
    graph = strata.graph(lambda x, w: ((x @ w).relu() @ w, ((x @ w).relu() @ w).sum()), x, w)
    cf = graph.compile()
    cf(x, w)[1].backward()
    state = strata.get_rng_state()
    drawing = strata.graph(lambda x: (F.dropout(x), F.dropout(x).sum()), x).compile()
    result = drawing(x)[1]
    after = strata.get_rng_state()
    result.backward()
    assert strata.equal(strata.get_rng_state(), after) and not strata.equal(state, after)


@pytest.mark.parametrize("ends", [[0], [1], [0, 1]])
def test_gradients_that_hang_on_none_are_refused_where_it_is_unclear(ends):
    def f(x):
        return x * 3, Constant.apply(x)

    x = strata.randn(4, requires_grad=True)
    cf = strata.graph(f, x).compile()
    results = cf(x)
    roots = [results[k] for k in ends]
    ones = [strata.ones_like(t) for t in roots]
    if len(ends) == 2:
        assert strata.equal(strata.autograd.grad(roots, x, ones)[0], 3 + x * 2)
        return
    with pytest.raises(NotImplementedError, match="multiply by that one"):
        strata.autograd.grad(roots, x, ones)


def test_a_hook_that_gives_what_does_not_hang_on_its_gradient_is_refused():
    def f(x):
        h = x * 2
        h.register_hook(lambda g: strata.full((4,), 7.0))
        return h * 3, x.sin()

    x = strata.randn(4, requires_grad=True)
    cf = strata.graph(f, x).compile()
    with pytest.raises(NotImplementedError, match="does not hang on"):
        cf(x)[0].sum().backward()
    found = [strata.autograd.grad([y.sum() for y in g(x)], x)[0] for g in (f, cf)]
    assert same(*found)
