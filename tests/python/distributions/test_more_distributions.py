"""Distributions, transforms and divergences against what PyTorch says of them, and samples against their moments."""

import json
import math
from pathlib import Path

import distribution_cases as cases
import pytest
import strata
from strata import distributions as D
from strata.testing import assert_close

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "distributions.json").read_text())


# PyTorch computes these in float32, or with approximations of Bessel functions.
ROUGH = {"GeneralizedPareto": 1e-5, "VonMises": 1e-6, "Multinomial": 1e-7}


def same(found, wanted, where):
    """Numbers within 1e-8, all else equal."""
    if isinstance(wanted, float) and isinstance(found, (int, float)):
        tolerance = ROUGH.get(where.partition(".")[0].partition("[")[0], 1e-8)
        assert found == pytest.approx(wanted, rel=tolerance, abs=tolerance), where
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), (where, found, wanted)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for name in wanted:
            same(found[name], wanted[name], f"{where}.{name}")
    else:
        wanted = wanted.replace("torch.", "strata.") if isinstance(wanted, str) else wanted
        assert found == wanted, (where, found, wanted)


@pytest.mark.parametrize("name", cases.CASES)
def test_facts(name):
    found, wanted = cases.facts(strata, *cases.CASES[name]), RECORDED["facts"][name]
    if name == "Kumaraswamy":  # PyTorch's mode is NaN throughout
        del found["mode"], wanted["mode"]
    same(found, wanted, name)


def test_the_mode_has_the_highest_density():
    d = D.Kumaraswamy(strata.tensor(2.0), strata.tensor(1.5))
    x = strata.linspace(0.01, 0.99, 99)
    assert abs(x[d.log_prob(x).argmax()] - d.mode) < 0.011 and D.Kumaraswamy(0.5, 3.0).mode.isnan()


@pytest.mark.parametrize("name", cases.TRANSFORMS)
def test_transforms(name):
    same(cases.transformed(strata, cases.TRANSFORMS[name]), RECORDED["transforms"][name], name)


@pytest.mark.parametrize("name", cases.NO_JACOBIAN)
def test_transforms_without_a_jacobian(name):
    same(cases.transformed(strata, cases.NO_JACOBIAN[name], False), RECORDED["no_jacobian"][name], name)


@pytest.mark.parametrize("name", cases.DIVERGENCES)
def test_divergences(name):
    same(cases.numbers(D.kl_divergence(*cases.DIVERGENCES[name](strata, D))), RECORDED["divergences"][name], name)


def test_divergences_of_different_kinds():
    """Beside PyTorch's numbers: a uniform q that begins and ends as p's support does is not beyond it."""
    found = cases.mixed(strata)
    assert found.keys() == RECORDED["mixed"].keys()
    for name, wanted in RECORDED["mixed"].items():
        same(found[name], wanted, name)
    zero, one = strata.zeros((), dtype=strata.float64), strata.ones((), dtype=strata.float64)
    for p in (D.Beta(one, one), D.ContinuousBernoulli(one / 2)):
        assert D.kl_divergence(p, D.Uniform(zero, one)).item() == pytest.approx(0, abs=1e-12)
        assert D.kl_divergence(D.Uniform(zero, one), p).item() == pytest.approx(0, abs=1e-12)
        assert D.kl_divergence(p, D.Uniform(zero, one / 2)) == D.kl_divergence(D.Uniform(zero, 2 * one), p) == math.inf


def test_divergence_within_a_family_of_ones_own():
    class Counts(D.ExponentialFamily):
        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (self.rate.log(),)

        def _log_normalizer(self, x):
            return x.exp()

    class Others(Counts):
        pass

    a, b = strata.tensor([0.5, 2.0]), strata.tensor([1.5, 0.3])
    assert_close(D.kl_divergence(Counts(a), Counts(b)), D.kl_divergence(D.Poisson(a), D.Poisson(b)))
    with pytest.raises(NotImplementedError, match="p type Others and q type Counts"):
        D.kl_divergence(Others(a), Counts(b))


def test_divergence_of_matrices_is_that_of_each():
    """PyTorch 2.13 mixes the rows of a batch; one by one it gives these numbers, 1.2231 and 1.7784."""
    a, b = strata.tensor([[2.0, 0.5], [0.5, 1.0]], requires_grad=True), strata.tensor([[1.0, -0.2], [-0.2, 1.5]])
    found = D.kl_divergence(D.Wishart(strata.tensor([3.0, 5.0]), a), D.Wishart(strata.tensor([4.0, 6.0]), b))
    assert_close(found, strata.tensor([1.2231, 1.7784]), rtol=0, atol=5e-5)
    found.sum().backward()
    assert a.grad.abs().min() > 0
    p = D.Wishart(strata.tensor([3.0, 5.0]), a)
    assert_close(D.ExponentialFamily.entropy(p), p.entropy())


def test_constraints_have_their_transforms():
    same(cases.biject(strata), RECORDED["biject"], "biject")


WITHOUT_MOMENTS = ("StudentT", "HalfCauchy", "VonMises", "FisherSnedecor")


@pytest.mark.parametrize("name", [n for n in cases.CASES if n not in WITHOUT_MOMENTS])
def test_samples(name):
    strata.manual_seed(1)
    d = cases.CASES[name][0](strata, D)
    x = d.sample((20_000,))
    assert x.shape == (20_000, *d.batch_shape, *d.event_shape) and not x.requires_grad
    assert bool(d.support.check(x).all())
    try:
        mean, variance = d.mean, d.variance
    except NotImplementedError:
        return
    error = (variance / 20_000).sqrt()
    assert bool(((x.mean(0) - mean).abs() <= 5 * error + 1e-9).all()), (x.mean(0), mean)


def test_von_mises_samples():
    strata.manual_seed(0)
    d = D.VonMises(strata.tensor([0.5, -2.0]), strata.tensor([4.0, 0.5]))
    x = d.sample((20_000,))
    assert_close((x - d.loc).cos().mean(0), 1 - d.variance, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0, 40.0, 2000.0])
def test_gamma_samples_have_the_gradient_of_equal_probability(alpha):
    """dx/da where cdf(a, x) stays: moving both along it keeps the cdf."""
    strata.manual_seed(0)
    a = strata.full((200,), alpha, dtype=strata.float64, requires_grad=True)
    x = D.Gamma(a, 1.0).rsample()
    (slope,) = strata.autograd.grad(x.sum(), a)
    step = 1e-4 * alpha
    cdf = strata.special.gammainc
    kept = (x > 1e-200) & (cdf(a, x) < 1 - 1e-9)
    before, after = cdf(a - step / 2, x - slope * step / 2), cdf(a + step / 2, x + slope * step / 2)
    assert_close(after[kept], before[kept], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["Beta", "Dirichlet", "StudentT", "MultivariateNormal", "Weibull", "RelaxedBernoulli"])
def test_rsample_reaches_the_parameters(name):
    strata.manual_seed(0)
    parameter = strata.tensor([1.5, 2.5], requires_grad=True)
    made = {
        "Beta": lambda p: D.Beta(p, 2.0),
        "Dirichlet": lambda p: D.Dirichlet(p),
        "StudentT": lambda p: D.StudentT(p + 2),
        "MultivariateNormal": lambda p: D.MultivariateNormal(p, p.diag()),
        "Weibull": lambda p: D.Weibull(p, p),
        "RelaxedBernoulli": lambda p: D.RelaxedBernoulli(0.5, logits=p),
    }[name](parameter)
    made.rsample((5,)).square().sum().backward()
    assert bool((parameter.grad != 0).all()) and bool(parameter.grad.isfinite().all())


def test_gradients_of_the_mean_of_samples():
    """The mean of a Beta's pathwise gradients is the gradient of its mean."""
    strata.manual_seed(0)
    a = strata.tensor([0.7, 2.0], dtype=strata.float64, requires_grad=True)
    b = strata.tensor([1.5, 3.0], dtype=strata.float64)
    D.Beta(a, b).rsample((40_000,)).mean(0).sum().backward()
    assert_close(a.grad, b / (a + b).square().detach(), rtol=0.05, atol=1e-3)


def test_caches_make_inverses_exact():
    t = D.TanhTransform(cache_size=1)
    x = strata.tensor([30.0])
    assert t.inv(t(x)) is x
    assert math.isinf(D.TanhTransform().inv(t(x)).item())


def test_errors():
    with pytest.raises(ValueError, match="Exactly one of"):
        D.MultivariateNormal(strata.zeros(2))
    with pytest.raises(ValueError, match="in_shape, out_shape"):
        D.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="to satisfy the constraint PositiveDefinite"):
        D.MultivariateNormal(strata.zeros(2), strata.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Binomial(3)
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        D.biject_to(D.constraints.boolean)
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Gamma(1.0, 1.0), D.Poisson(1.0))
    with pytest.raises(ValueError, match="does not equal"):
        D.MixtureSameFamily(D.Categorical(strata.ones(3)), D.Normal(strata.zeros(2), 1.0))


def test_pytorchs_file_names():
    from strata.distributions.beta import Beta
    from strata.distributions.studentT import StudentT
    from strata.distributions.transforms import TanhTransform
    from strata.distributions.utils import broadcast_all, probs_to_logits

    assert Beta is D.Beta and StudentT is D.StudentT and TanhTransform is D.TanhTransform
    assert broadcast_all(1, 2.0)[0].item() == 1.0 and probs_to_logits(strata.tensor(0.5), True).item() == 0


def test_helpers_that_other_packages_import():
    from strata.distributions.utils import _standard_normal, _sum_rightmost

    x = strata.arange(24.0).reshape(2, 3, 4)
    assert _sum_rightmost(x, 0) is x and strata.equal(_sum_rightmost(x, 2), x.sum((1, 2)))
    drawn = _standard_normal((2000, 2), strata.float64, strata.device("cpu"))
    assert drawn.shape == (2000, 2) and drawn.dtype == strata.float64 and abs(drawn.mean().item()) < 0.1 and abs(drawn.std().item() - 1) < 0.1


def test_expand_of_classes_of_ones_own():
    class Shifted(D.Distribution):
        arg_constraints = {"loc": D.constraints.real}

        def __init__(self, loc, validate_args=None):
            self.loc = loc
            super().__init__(loc.shape, validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.loc = self.loc.expand(batch_shape)
            super(Shifted, new).__init__(batch_shape, validate_args=False)
            return new

    class Named(Shifted):
        def __init__(self, name):
            super().__init__(strata.zeros(1))

    wide = Shifted(strata.zeros(1)).expand((4, 3))
    assert type(wide) is Shifted and wide.batch_shape == (4, 3) and wide.loc.shape == (4, 3)
    assert Shifted(strata.ones(1)).expand((2,), _instance=wide) is wide and wide.batch_shape == (2,)
    with pytest.raises(NotImplementedError, match="Subclass Named of Shifted that defines a custom __init__"):
        Named("x").expand((2,))
