"""Gradients of a compiled graph's gradients: captured and compiled in their turn, with eager's bits."""

from __future__ import annotations

import pytest
import strata

F = strata.nn.functional
grad = strata.autograd.grad


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and strata.equal(a, b)


def cubic(x, w):
    return (x * w).tanh() * x * x


def attention(x, w):
    q = x @ w
    return (q @ q.transpose(-1, -2)).softmax(-1) @ x


def normed(x, w):
    middle = x.mean(-1, keepdim=True)
    return ((x - middle) * ((x - middle) ** 2 + 1e-5).mean(-1, keepdim=True).rsqrt()).sigmoid() @ w


def halves_of_it(x, w):
    a, b = (x @ w).chunk(2)
    return a.exp() * b.sigmoid()


def centred(x, w):
    with strata.no_grad():
        middle = (x * w).mean()
    return (x - middle).pow(3) * w


def layers(x, w):
    return F.layer_norm(x @ w, (4,), w[0], w[1]).relu() @ F.rms_norm(x, (4,))


@pytest.mark.parametrize("f", [cubic, attention, normed, halves_of_it, centred, layers])
def test_second_and_third_derivatives_are_eagers(f):
    x, w = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4, requires_grad=True)
    cf = strata.graph(f, x, w).compile()
    for _ in range(2):  # made, then at hand
        found = []
        for g in (cf, f):
            y = g(x, w)
            first = grad(y, (x, w), y.detach() + 1, create_graph=True)
            ends = [t for t in first if t.requires_grad]
            second = grad(ends, (x, w), [t.detach() for t in ends], create_graph=True, allow_unused=True)
            ends = [t for t in second if t is not None and t.requires_grad]
            third = grad(ends, (x, w), [strata.ones_like(t) for t in ends], allow_unused=True)
            found.append([y, *first, *second, *third])
        for i, (a, b) in enumerate(zip(*found, strict=True)):
            assert (a is None) == (b is None) and (a is None or same(a, b)), i


def test_gradient_penalty_trains():
    model = strata.nn.Sequential(strata.nn.Linear(6, 16), strata.nn.Tanh(), strata.nn.Linear(16, 1))
    x = strata.randn(32, 6, requires_grad=True)
    cf = strata.graph(model, x).compile()
    for f in (cf, model):
        model.zero_grad()
        (slope,) = grad(f(x).sum(), x, create_graph=True)
        ((slope.norm(dim=1) - 1) ** 2).mean().backward()
        if f is cf:
            wanted = [p.grad for p in model.parameters()]
    for a, p in zip(wanted, model.parameters(), strict=True):
        assert (a is None) == (p.grad is None) and (a is None or same(a, p.grad))


def test_a_penalty_inside_of_a_capture():
    x, w = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4, requires_grad=True)
    inner = strata.graph(centred, x, w).compile()

    def penalty(f, x, w):
        (slope,) = grad(f(x, w).sum(), x, create_graph=True)
        return (slope**2).sum()

    cf = strata.graph(lambda x, w: penalty(inner, x, w), x, w).compile()
    want = penalty(centred, x, w)
    got = cf(x, w)
    assert same(got, want)
    for a, b in zip(grad(got, (x, w)), grad(want, (x, w)), strict=True):
        assert same(a, b)


def test_finite_differences():
    x, w = (strata.randn(3, 3, dtype=strata.float64, requires_grad=True) for _ in range(2))
    for f in (cubic, attention, centred):
        cf = strata.graph(f, x, w).compile()
        if f is not centred:  # whose middle stands still for gradients alone
            assert strata.autograd.gradcheck(cf, (x, w))
            assert strata.autograd.gradgradcheck(cf, (x, w))


def test_results_of_repeated_elements(tmp_path):
    def f(x):
        return (x * x).expand(4, 3), x[:, None].expand(3, 2).t()

    x = strata.randn(3, requires_grad=True)
    graph = strata.graph(f, x)
    graph.save(tmp_path / "repeated")
    tangents = strata.randn(4, 3), strata.randn(3, 2).t()
    found = []
    for g in (graph.compile(), f, strata.load_graph(tmp_path / "repeated").compile()):
        (slope,) = grad(g(x), x, tangents, create_graph=True)
        found.append((slope, *grad(slope.sum(), x)))
    assert all(same(a, b) and same(a, c) for a, b, c in zip(*found, strict=True))


def test_linear_functions_and_unused_arguments():
    x, w = strata.randn(3, requires_grad=True), strata.randn(3, requires_grad=True)
    cf = strata.graph(lambda x, w: x * 2, x, w).compile()
    v = strata.ones(3, requires_grad=True)
    (slope,) = grad(cf(x, w), x, v, create_graph=True)
    assert same(grad(slope.sum(), v)[0], strata.full((3,), 2.0))
    assert grad(cf(x, w).sum(), w, allow_unused=True) == (None,)


class Straight(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g * 1.0


class Reversed(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


@pytest.mark.parametrize("function", [Straight, Reversed])
def test_functions_with_a_derivative_of_their_own(function):
    x = strata.randn(5, requires_grad=True)

    def f(x):
        return function.apply(x * 3) * x

    cf = strata.graph(f, x).compile()
    assert same(grad(cf(x).sum(), x)[0], grad(f(x).sum(), x)[0])
    with pytest.raises(NotImplementedError, match=r"autograd.Function or a hook calls.*take it of the function itself"):
        grad(cf(x).sum(), x, create_graph=True)
    outer = strata.graph(lambda x: cf(x) * 2, x).compile()
    assert same(grad(outer(x).sum(), x)[0], grad((f(x) * 2).sum(), x)[0]), "inside of a capture, too"


def test_what_cannot_be_run_again_is_refused():
    x = strata.randn(5, requires_grad=True)
    own = strata.Generator()
    noisy = strata.graph(lambda x: x * x * strata.rand(5, generator=own), x).compile()
    with pytest.raises(NotImplementedError, match="draws from a generator that it was given"):
        grad(noisy(x).sum(), x, create_graph=True)
    count = strata.zeros(())
    counting = strata.graph(lambda x, count: (x * x, count.add_(1))[0], x, count).compile()
    with pytest.raises(NotImplementedError, match="writes its input 1"):
        grad(counting(x, count).sum(), x, create_graph=True)


def noisy(x, w):
    y = F.dropout(x @ w, 0.4)
    return (y * strata.randn(4, 4)).tanh() + F.dropout(x * x, 0.2) * strata.rand(4)


def chosen(x, w):
    index = strata.multinomial(x.detach().abs() + 1, 2)  # it reserves by itself
    return (F.dropout(x, 0.5) * w).gather(1, index).pow(3) * strata.bernoulli(strata.full((4, 2), 0.5))


def shuffled(x, w):
    return (x[strata.randperm(4)] * w).pow(3) * strata.randperm(4)


@strata.library.custom_op("second_derivatives::drawing", mutates_args=())
def drawing(x: strata.Tensor) -> strata.Tensor:
    return x * strata.rand(4)


@drawing.register_fake
def _(x):
    return strata.empty_like(x)


def of_its_own(x, w):
    return (x * drawing(w.detach())).pow(3) * w


@pytest.mark.parametrize("f", [noisy, chosen, shuffled, of_its_own])
def test_random_numbers_are_those_of_the_forward(f):
    x, w = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4, requires_grad=True)
    cf = strata.graph(f, x, w).compile()
    for _ in range(2):
        found = []
        for g in (cf, f):
            strata.manual_seed(5)
            y = g(x, w)
            strata.rand(3)  # others are drawn before the gradients are asked for
            first = grad(y, (x, w), y.detach() + 1, create_graph=True)
            second = grad(first, (x, w), [t.detach() for t in first], create_graph=True)
            third = grad(second, (x, w), [t.detach() for t in second], allow_unused=True)
            found.append([y, *first, *second, *third, strata.get_rng_state()])
        for i, (a, b) in enumerate(zip(*found, strict=True)):
            assert (a is None) == (b is None) and (a is None or same(a, b)), i


def test_random_numbers_of_calls_in_turn():
    x, w = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4, requires_grad=True)
    cf = strata.graph(noisy, x, w).compile()
    found = []
    for g in (cf, noisy):
        strata.manual_seed(6)
        both = [g(x, w), g(x, w)]
        firsts = [grad(y.sum(), x, create_graph=True)[0] for y in reversed(both)]
        found.append([*both, *firsts, *(grad(t.sum(), w)[0] for t in firsts)])
    assert not strata.equal(found[0][0], found[0][1])
    assert all(same(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("both", [False, True])
def test_a_penalty_of_gradients_beside_dropout(both):
    """Ten steps of training, the model compiled. Where a loss has the result and its gradient, eager adds what comes of
    them at each operator, a graph at its inputs."""
    weights = []
    for compiled in (False, True):
        strata.manual_seed(7)
        model = strata.nn.Sequential(strata.nn.Linear(6, 8), strata.nn.Tanh(), strata.nn.Dropout(0.3), strata.nn.Linear(8, 1))
        step, x = strata.optim.SGD(model.parameters(), lr=0.1), strata.randn(5, 6, requires_grad=True)
        run = strata.compile(model) if compiled else model
        for _ in range(10):
            y = run(x)
            (g,) = grad(y.sum(), x, create_graph=True)
            loss = (g.norm(dim=1) - 1).pow(2).mean()
            step.zero_grad()
            (loss + y.pow(2).mean() if both else loss).backward()
            step.step()
        weights.append([p.detach() for p in model.parameters()])
    for a, b in zip(*weights, strict=True):
        strata.testing.assert_close(a, b, rtol=1e-5, atol=1e-6) if both else strata.testing.assert_close(a, b, rtol=0, atol=0)


def test_random_numbers_inside_of_a_capture():
    x, w = strata.randn(4, 4, requires_grad=True), strata.randn(4, 4, requires_grad=True)
    cf = strata.graph(noisy, x, w).compile()
    with pytest.raises(NotImplementedError, match="random numbers, inside of another capture"):
        strata.graph(lambda x, w: grad(cf(x, w).sum(), x, create_graph=True)[0], x, w)


def test_inputs_that_are_written_in_between():
    x, w = strata.randn(3, requires_grad=True), strata.randn(3)
    cf = strata.graph(lambda x, w: x + w, x, w).compile()
    y = cf(x, w)
    w.add_(1)
    grad(y.sum(), x, retain_graph=True)  # the first derivative does not need it
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(y.sum(), x, create_graph=True)
    y = cf(x, w)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        strata.graph(cubic, x, w)  # a capture in between changes nothing
        z = strata.graph(cubic, x, w).compile()(x, w)
        z.sum().backward()
        z.sum().backward()


def test_how_gradients_went_is_in_the_text():
    x, w = strata.randn(3, requires_grad=True), strata.randn(3)
    text = str(strata.graph(lambda x, w: centred(x, w).exp() + Straight.apply(x), x, w))
    assert " = no_grad aten::mul.Tensor" in text and " = saved aten::detach" in text and " = own_grad aten::round" in text
    assert strata._C._graph_text(strata._C._graph_parse(text, [])) == text


@pytest.mark.parametrize("create", [False, True])
def test_results_without_a_gradient(create):
    """What hangs on them alone gets None, as in eager; the rest has eager's bits, which zeros would change."""

    def f(x, w, v):
        return x * w, (x / v).log(), v.exp()

    x, w, v = strata.rand(4, requires_grad=True), strata.randn(4, requires_grad=True), strata.zeros(4, requires_grad=True)
    cf = strata.graph(f, x, w, v).compile()
    for ends in ((0,), (1,), (0, 2), (2,), (0, 1, 2), (0,)):
        found = []
        for g in (cf, f):
            ys = g(x, w, v)
            first = grad([ys[i].sum() for i in ends], (x, w, v), allow_unused=True, create_graph=create)
            second = [grad(t.sum(), (x, w, v), retain_graph=True, allow_unused=True) for t in first if create and t is not None and t.requires_grad and t is not first[2]]
            found.append([*first, *(t for s in second for t in s)])
        if not create:
            assert len(found[0]) == len(found[1])
        for a, b in zip(*found, strict=False):
            assert (a is None) == (b is None) and (a is None or strata.equal(a, b) or bool((a.isnan() == b.isnan()).all())), ends


def test_parameters_of_results_that_nobody_uses_stay():
    model = strata.nn.Linear(3, 2), strata.nn.Linear(3, 2)
    x = strata.randn(5, 3)
    for f in (lambda x: [m(x) for m in model], lambda x: [F.dropout(m(x), 0.5) for m in model]):
        cf = strata.graph(f, x).compile()
        cf(x)[0].sum().backward()
        assert model[0].weight.grad is not None and model[1].weight.grad is None
