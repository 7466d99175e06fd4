"""Distributions that a captured function makes: one graph with eager's bits, samples and generator included."""

import pytest
import strata
from strata import distributions as D

P, Q = [0.3, 0.5, 0.9], [1.5, 2.0, 4.0]
MADE = {
    "Normal": D.Normal,
    "LogNormal": D.LogNormal,
    "Laplace": D.Laplace,
    "Cauchy": D.Cauchy,
    "Gumbel": D.Gumbel,
    "Uniform": D.Uniform,
    "Bernoulli": lambda p, q: D.Bernoulli(p),
    "Bernoulli of logits": lambda p, q: D.Bernoulli(logits=p),
    "Categorical": lambda p, q: D.Categorical(p),
    "Categorical of logits": lambda p, q: D.Categorical(logits=p),
    "OneHotCategorical": lambda p, q: D.OneHotCategoricalStraightThrough(logits=p),
    "Geometric": lambda p, q: D.Geometric(p),
    "Poisson": lambda p, q: D.Poisson(q),
    "Exponential": lambda p, q: D.Exponential(q),
    "HalfNormal": lambda p, q: D.HalfNormal(q),
    "Dirichlet": lambda p, q: D.Dirichlet(q),
    "Weibull": lambda p, q: D.Weibull(q, q),
    "Pareto": lambda p, q: D.Pareto(q, q),
    "Multinomial": lambda p, q: D.Multinomial(4, p),
    "MultivariateNormal": lambda p, q: D.MultivariateNormal(p, scale_tril=strata.diag(q)),
    "Independent": lambda p, q: D.Independent(D.Normal(p, q), 1),
    "Transformed": lambda p, q: D.TransformedDistribution(D.Normal(p, q), [D.AffineTransform(1.0, 2.0), D.ExpTransform()]),
    "Mixture": lambda p, q: D.MixtureSameFamily(D.Categorical(logits=p), D.Normal(p, q)),
    "RelaxedBernoulli": lambda p, q: D.RelaxedBernoulli(strata.tensor(0.5), p),
}
WITHOUT_ENTROPY = ("Poisson", "Multinomial", "Transformed", "Mixture", "RelaxedBernoulli")


def t():
    return strata.tensor(P), strata.tensor(Q)


def seeded(f):
    strata.manual_seed(3)
    return *f(*t()), strata.rand(1)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_inside_has_the_bits_of_eager(name):
    make = MADE[name]

    def f(p, q):
        d = make(p, q)
        x = d.sample((2,))
        more = (d.entropy(),) if name not in WITHOUT_ENTROPY else ()
        return d, x, d.log_prob(x), *more

    compiled = strata.compile(f, fullgraph=True)
    for _ in range(2):
        want, found = seeded(f), seeded(compiled)
        assert type(found[0]) is type(want[0]) and str(found[0]) == str(want[0])
        assert all(strata.equal(a, b) for a, b in zip(found[1:], want[1:], strict=True))
        assert strata.equal(found[0].log_prob(found[1]), want[2])


def test_gradients_reach_the_parameters():
    def f(p, q):
        x = D.Normal(p, q).rsample()
        return (D.Normal(q, 1.0).log_prob(x) - D.kl_divergence(D.Normal(p, q), D.Normal(0.0, 2.0))).sum()

    grads = []
    for g in (f, strata.compile(f, fullgraph=True)):
        p, q = (v.requires_grad_() for v in t())
        strata.manual_seed(1)
        grads.append(strata.autograd.grad(g(p, q), (p, q)))
    assert all(strata.allclose(a, b) for a, b in zip(*grads, strict=True))


def test_a_divergence_that_is_registered_behind_a_capture_is_used():
    class Mine(D.Normal):
        pass

    compiled = strata.compile(lambda p, q: D.kl_divergence(Mine(p, q), Mine(q, p)), fullgraph=True)
    p, q = t()
    assert strata.allclose(compiled(p, q), D.kl_divergence(D.Normal(p, q), D.Normal(q, p)))
    D.register_kl(Mine, Mine)(lambda a, b: a.loc * 7)
    assert strata.equal(compiled(p, q), p * 7)


def test_checks_are_made_where_they_are_asked_for():
    """By default a compiled function makes none, since they read values; PyTorch's compile turns them off for the whole process."""
    p, q = t()
    by_default = strata.compile(lambda p, q: D.Normal(p, q).log_prob(p), fullgraph=True)
    assert by_default(p, -q).isnan().all()
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(p, -q)
    asked = strata.compile(lambda p, q: D.Normal(p, q, validate_args=True).log_prob(p))
    assert strata.equal(asked(p, q), D.Normal(p, q).log_prob(p))
    with pytest.raises(ValueError, match="Expected parameter scale"):
        asked(p, -q)
    expanded = D.Normal(p, q, validate_args=True).expand((2, 3))
    with pytest.raises(ValueError, match="within the support"):
        strata.compile(lambda x: expanded.log_prob(x))(strata.full((3,), strata.nan))


def test_a_tensor_that_no_operator_made_is_told():
    make = lambda q: D.Gamma(q.unsqueeze(0), q)  # noqa: E731

    def f(q):
        return make(q).sample((2,))

    with pytest.raises(RuntimeError, match="not one graph"):
        strata.compile(f, fullgraph=True)(t()[1])
    strata.manual_seed(0)
    want = f(t()[1])
    strata.manual_seed(0)
    assert strata.equal(strata.compile(f)(t()[1]), want)
