"""Distributions against what defines them: densities are derivatives of cdfs, entropies and divergences integrals."""

import math

import pytest
import strata
from strata import distributions as D
from strata.testing import assert_close

F64 = strata.float64
LOC = strata.tensor([-0.5, 1.0], dtype=F64)
SCALE = strata.tensor([0.7, 1.5], dtype=F64)
CONTINUOUS = {
    "Normal": lambda: D.Normal(LOC, SCALE),
    "Laplace": lambda: D.Laplace(LOC, SCALE),
    "Cauchy": lambda: D.Cauchy(LOC, SCALE),
    "Gumbel": lambda: D.Gumbel(LOC, SCALE),
    "LogNormal": lambda: D.LogNormal(LOC, SCALE),
    "HalfNormal": lambda: D.HalfNormal(SCALE),
    "Exponential": lambda: D.Exponential(SCALE),
    "Uniform": lambda: D.Uniform(LOC, LOC + SCALE),
}
PROBS = strata.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], dtype=F64)
DISCRETE = {
    "Bernoulli": lambda: D.Bernoulli(probs=PROBS[:, 0]),
    "Bernoulli logits": lambda: D.Bernoulli(logits=LOC),
    "Categorical": lambda: D.Categorical(PROBS * 3),
    "Categorical logits": lambda: D.Categorical(logits=PROBS.log() + 2),
    "OneHotCategorical": lambda: D.OneHotCategorical(PROBS),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_is_the_derivative_of_cdf(name):
    d = CONTINUOUS[name]()
    q = strata.linspace(0.05, 0.94, 7, dtype=F64)[:, None].expand(7, 2)
    x = d.icdf(q).detach().requires_grad_()
    cdf = d.cdf(x)
    assert_close(cdf, q)
    (density,) = strata.autograd.grad(cdf.sum(), x)
    assert_close(d.log_prob(x).exp(), density)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n != "Cauchy"])
def test_moments_and_entropy_are_integrals(name):
    d = CONTINUOUS[name]()
    n = 200_000
    q = (strata.arange(n, dtype=F64)[:, None] + 0.5) / n  # the mean over equal quantiles is the mean over samples
    x = d.icdf(q.expand(n, 2))
    assert_close(x.mean(0), d.mean, rtol=1e-3, atol=1e-3)
    assert_close(x.var(0), d.variance, rtol=5e-2, atol=1e-3)
    assert_close(d.stddev, d.variance.sqrt())
    assert_close(-d.log_prob(x).mean(0), d.entropy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples(name):
    strata.manual_seed(0)
    d = CONTINUOUS[name]()
    x = d.sample((20_000,))
    assert x.shape == (20_000, 2) and not x.requires_grad and d.support.check(x).all()
    u = d.cdf(x).sort(0)[0]  # uniform, if the samples are right: Kolmogorov's distance
    grid = (strata.arange(20_000, dtype=F64) + 0.5)[:, None] / 20_000
    assert float((u - grid).abs().max()) < 0.015
    scale = SCALE.clone().requires_grad_()
    if "scale" in d.arg_constraints and name != "HalfNormal":
        type(d)(LOC, scale).rsample((3,)).sum().backward()
        assert scale.grad is not None and scale.grad.ne(0).any()


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_ones(name):
    d = DISCRETE[name]()
    values = d.enumerate_support()
    p = d.log_prob(values).exp()
    assert_close(p.sum(0), strata.ones(2, dtype=F64))
    assert_close(-(p * p.log()).sum(0), d.entropy())
    assert_close(d.perplexity(), d.entropy().exp())
    strata.manual_seed(0)
    x = d.sample((50_000,))
    assert x.shape[1:] == d.batch_shape + d.event_shape
    for value, probability in zip(values, p, strict=True):
        same = x == value
        same = same.all(-1) if d.event_shape else same
        assert_close(same.to(F64).mean(0), probability, rtol=0, atol=0.015)


def test_geometric_sums_to_one():
    d = D.Geometric(PROBS[:, 2])
    k = strata.arange(400, dtype=F64)[:, None].expand(400, 2)
    p = d.log_prob(k).exp()
    assert_close(p.sum(0), strata.ones(2, dtype=F64))
    assert_close((p * k).sum(0), d.mean)
    assert_close(-(p * p.log()).nan_to_num().sum(0), d.entropy())


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gumbel", "HalfNormal", "Exponential", "LogNormal"])
def test_divergence_is_an_integral(name):
    p = CONTINUOUS[name]()
    q = type(p)(*(getattr(p, name).flip(0) * 1.1 for name in p.arg_constraints if name in vars(p)))
    n = 200_000
    x = p.icdf(((strata.arange(n, dtype=F64)[:, None] + 0.5) / n).expand(n, 2))
    assert_close(D.kl_divergence(p, q), (p.log_prob(x) - q.log_prob(x)).mean(0), rtol=2e-3, atol=1e-3)


def test_divergences_in_other_ways():
    p, q = D.Categorical(PROBS), D.Categorical(PROBS.flip(0))
    assert_close(D.kl_divergence(p, q), (PROBS * (PROBS / PROBS.flip(0)).log()).sum(-1))
    a, b = D.Independent(D.Normal(LOC, SCALE), 1), D.Independent(D.Normal(0 * LOC, SCALE), 1)
    assert_close(D.kl_divergence(a, b), D.kl_divergence(a.base_dist, b.base_dist).sum())
    assert_close(a.log_prob(LOC), a.base_dist.log_prob(LOC).sum())
    with pytest.raises(NotImplementedError, match="No KL.*register_kl"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Bernoulli(0.5))


def test_text_and_refusals():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Categorical(logits=PROBS)) == "Categorical(logits: strata.Size([2, 3]))"
    with pytest.raises(ValueError, match="Expected parameter scale .* to satisfy the constraint GreaterThan"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support"):
        D.Bernoulli(0.5).log_prob(strata.tensor(2.0))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Categorical()
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(LOC, SCALE).log_prob(strata.zeros(7, dtype=F64))
    assert math.isnan(D.Normal(0.0, 1.0, validate_args=False).log_prob(strata.tensor(math.nan)))


def test_scores_reach_the_policy():
    logits = strata.zeros(1, 3, requires_grad=True)
    d = D.Categorical(logits=logits)
    (-d.log_prob(strata.tensor([1]))).sum().backward()
    assert_close(logits.grad, strata.tensor([[1 / 3, -2 / 3, 1 / 3]]))
    one = D.OneHotCategoricalStraightThrough(logits=logits)
    one.rsample().sum().backward()


def test_a_logarithm_is_not_what_it_is_the_logarithm_of():
    log_normal, normal, uniform = D.LogNormal(LOC, SCALE), D.Normal(LOC, SCALE), D.Uniform(0.0, 1.0)
    assert not isinstance(log_normal, D.Normal)
    for p, q in ((log_normal, normal), (normal, log_normal), (uniform, log_normal)):
        with pytest.raises(NotImplementedError, match="No KL.*LogNormal"):
            D.kl_divergence(p, q)
    other = D.LogNormal(LOC.flip(0), SCALE.flip(0))
    assert_close(D.kl_divergence(log_normal, other), D.kl_divergence(normal, D.Normal(LOC.flip(0), SCALE.flip(0))))


def test_divergence_of_certain_outcomes():
    probs = strata.tensor([0.0, 0.5, 1.0], dtype=F64)
    found = D.kl_divergence(D.Bernoulli(probs[:, None]), D.Bernoulli(probs))
    inf, bit = math.inf, math.log(2)
    assert_close(found, strata.tensor([[0, bit, inf], [inf, 0, inf], [inf, bit, 0]], dtype=F64))


def test_categories_and_rows_do_not_compare():
    p = strata.tensor([0.3, 0.7])
    numbers, rows = D.Categorical(p), D.OneHotCategorical(p)
    for a, b in ((numbers, rows), (rows, numbers)):
        with pytest.raises(NotImplementedError, match="register_kl"):
            D.kl_divergence(a, b)
    assert D.kl_divergence(rows, rows).item() == 0


def test_draws_end_whatever_the_concentration_is():
    odd = strata.tensor([0.0, -0.5, math.nan, math.inf, 1e-310, 1e30], dtype=F64)
    x = D.Gamma(odd, 1.0, validate_args=False).sample()
    assert x[1:3].isnan().all() and x[3] == math.inf and (x[[0, 4, 5]] >= 0).all()
    x = D.VonMises(strata.zeros(6, dtype=F64), odd, validate_args=False).sample((20,))
    assert x[:, 1:3].isnan().all() and (x[:, [0, 3, 4, 5]].abs() <= math.pi).all()
    assert_close(x[:, 5], strata.zeros(20, dtype=F64), atol=1e-13, rtol=0)
    wide = D.VonMises(strata.zeros(2, dtype=F64), strata.tensor([0.9e8, 1.1e8], dtype=F64)).sample((20000,)) * 1e4
    assert_close(wide.std(0), strata.tensor([1 / 0.9**0.5, 1 / 1.1**0.5], dtype=F64), atol=0.03, rtol=0)
