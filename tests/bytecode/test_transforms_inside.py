"""strata.func inside of captured functions, and captured functions that it made: one graph, eager's bits, gradients through it."""

import pytest
import strata
from strata import func, nn
from strata.utils._pytree import tree_flatten

NET = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
FACTOR = 2.5


def x():
    return strata.arange(12.0).reshape(3, 4) / 12 + 0.1


def w():
    return strata.arange(4.0) / 3


def per_sample(w, a):
    return ((a * w).sum() - 1) ** 2


def pulled(x):
    y, pull = func.vjp(lambda a: (a.sin(), a.cos()), x)
    return y, pull((strata.ones_like(x), x))


def of_two(x):
    z = x * 2
    return func.grad(lambda a: (a * z).sum())(x) + z


def without_gradients(x):
    with strata.no_grad():
        return func.grad(lambda a: (a * a).sum())(x)


def of_module(x):
    params = dict(NET.named_parameters())
    return func.grad(lambda p: func.functional_call(NET, p, (x,)).sum())(params)


def of_two_dicts(x):
    bias = {"2.bias": x.sum().reshape(1)}
    return func.functional_call(NET, ({"0.weight": x[:1].expand(5, 4)}, bias), x) + NET(x)


CALLS = {
    "grad": lambda x: func.grad(lambda a: (a.sin() * FACTOR).sum())(x),
    "grad of grad": lambda x: func.grad(lambda a: func.grad(lambda b: (b**3).sum())(a).sum())(x),
    "grad_and_value": lambda x: func.grad_and_value(lambda a, b: (a @ b).pow(2).sum(), argnums=(0, 1))(x, x[0]),
    "has_aux": lambda x: func.grad(lambda a: ((a**2).sum(), a * 2), has_aux=True)(x),
    "jacrev": lambda x: func.jacrev(lambda a: a.sin())(x[0]),
    "jacfwd": lambda x: func.jacfwd(lambda a: a.sin() * a)(x[0]),
    "hessian": lambda x: func.hessian(lambda a: (a**3).sum())(x[0]),
    "vmap": lambda x: func.vmap(lambda a: (a, a.sum()), in_dims=1, out_dims=(1, 0))(x),
    "vmap of a random function": lambda x: strata.vmap(lambda a: a + strata.rand(4), randomness="different")(x),
    "gradients of samples": lambda x: func.vmap(func.grad(per_sample), in_dims=(None, 0))(x[0], x),
    "vmap of jacrev": lambda x: func.vmap(func.jacrev(lambda a: a**2))(x),
    "vjp": pulled,
    "of two": of_two,
    "without gradients": without_gradients,
    "functional_call": of_module,
    "functional_call by two dicts": of_two_dicts,
    "autograd.functional": lambda x: (
        strata.autograd.functional.jacobian(lambda a: a.sin(), x[0]),
        strata.autograd.functional.hvp(lambda a: (a**3).sum(), x[0], x[1]),
        strata.autograd.functional.jvp(strata.cos, x, x),
    ),
    "made outside": func.grad(lambda a: (a.sin() * FACTOR).sum()),
    "vmap made outside": strata.vmap(lambda a: a.sin().sum()),
    "jacrev made outside": lambda x: func.jacrev(strata.sin)(x[0]),
}


def tensors(tree):
    return [v for v in tree_flatten(tree)[0] if isinstance(v, strata.Tensor)]


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_is_one_graph_with_the_bits_of_eager(name, learns):
    found = []
    f = CALLS[name]
    for g in (f, strata.compile(f, fullgraph=True)):
        given = x().requires_grad_(learns)
        for _ in range(2):
            strata.manual_seed(0)
            got = tensors(g(given))
        ends = [t for t in got if t.requires_grad]
        leaves = [given, *NET.parameters()]
        grads = strata.autograd.grad(sum(t.sum() for t in ends), [t for t in leaves if t.requires_grad], allow_unused=True) if ends else ()
        found.append((got, grads))
    (want, slopes), (got, others) = found
    assert len(got) == len(want) and all(strata.equal(a, b) and a.requires_grad == b.requires_grad for a, b in zip(got, want, strict=True))
    assert len(slopes) == len(others)
    for a, b in zip(slopes, others, strict=True):
        assert (a is None) == (b is None) and (a is None or strata.allclose(a, b))


def test_errors_of_transforms_are_caught_inside():
    def f(x):
        try:
            return func.grad(lambda a: a)(x)
        except RuntimeError as error:
            return str(error), x + 1

    want, found = f(x()), strata.compile(f, fullgraph=True)(x())
    assert found[0] == want[0] and "scalar" in want[0] and strata.equal(found[1], want[1])


def test_what_the_function_reads_is_guarded(monkeypatch):
    compiled = strata.compile(CALLS["grad"], fullgraph=True)
    compiled(x())
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert strata.equal(compiled(x()), CALLS["grad"](x()))


def test_functional_call_leaves_the_module_as_it_was():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = {name: t.clone() for name, t in net.state_dict().items()}
    f = lambda x, w: func.functional_call(net, {"0.weight": w}, (x,))  # noqa: E731
    net.eval()
    compiled = strata.compile(f, fullgraph=True)
    weight = strata.eye(4)
    assert strata.equal(compiled(x(), weight), f(x(), weight))
    assert all(strata.equal(t, before[name]) for name, t in net.state_dict().items())
    with strata.no_grad():
        net[0].bias += 1  # what is not replaced is the module's own
    assert strata.equal(compiled(x(), weight), f(x(), weight))
    del net[0].weight
    net[0].weight = nn.Parameter(strata.zeros(4, 4))
    assert strata.equal(compiled(x(), weight), f(x(), weight))


def test_a_long_vmap_is_not_unrolled():
    f = lambda x: strata.vmap(lambda a: a.sin().sum())(x)  # noqa: E731
    many = strata.rand(65, 3)
    assert strata.equal(strata.compile(f)(many), f(many))
    with pytest.raises(RuntimeError, match="vmap_over_many_elements cannot be captured"):
        strata.compile(f, fullgraph=True)(many)
    strata.compile(f, fullgraph=True)(many[:64])


def test_sizes_of_transforms_are_symbols():
    f = CALLS["grad"]
    compiled = strata.compile(f)
    for n in range(3, 13):
        given = strata.rand(n, 2)
        assert strata.equal(compiled(given), f(given))
    assert strata._dynamo.explain(f)(strata.rand(4, 2)).graph_break_count == 0


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", strata.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.count


@pytest.mark.parametrize("make, name", [(Tied, "a.weight"), (Counting, "count")])
def test_what_breaks_is_right(make, name):
    module = make()
    given = {name: strata.full_like(module.get_parameter(name) if make is Tied else module.count, 0.5)}
    f = lambda x, t: func.functional_call(module, {name: t}, (x,))  # noqa: E731
    want = f(x(), given[name])
    compiled = strata.compile(f)
    for _ in range(2):
        assert strata.equal(compiled(x(), given[name]), want)
    with pytest.raises(RuntimeError, match="not one graph"):
        strata.compile(f, fullgraph=True)(x(), given[name])
