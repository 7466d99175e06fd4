"""Which classes distributions are of, and whose tensors their parameters are."""

import copy

import pytest
import strata
from strata import distributions as D
from strata.testing import assert_close


def test_parameters_are_the_tensors_given():
    """So that they are leaves, and a module that holds a distribution of its own parameter can be copied."""

    class Model(strata.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = strata.nn.Parameter(strata.zeros(2))
            self.d = D.Normal(self.p, strata.ones(2))

    model = copy.deepcopy(Model())
    assert model.d.loc is model.p
    scale = strata.ones(3, requires_grad=True)
    assert D.Gamma(scale, scale).rate is scale and D.Bernoulli(logits=scale).logits is scale


def test_transforms_make_named_ones():
    value = strata.tensor([0.3, 2.0])
    for named in (D.LogNormal(0.5, 2.0), D.Gumbel(0.5, 2.0)):
        assert isinstance(named, D.TransformedDistribution)
        assert_close(named.log_prob(value), D.TransformedDistribution(named.base_dist, named.transforms).log_prob(value))
    for halved in (D.HalfNormal(2.0), D.HalfCauchy(2.0)):
        assert isinstance(halved, D.TransformedDistribution) and halved.expand([3]).sample((2,)).shape == (2, 3)


def test_exponential_families():
    for one in (D.Normal(1.0, 2.0), D.Exponential(2.0), D.Bernoulli(0.3)):
        assert_close(D.ExponentialFamily.entropy(one), one.entropy())


def test_one_hot_is_not_categorical():
    assert not isinstance(D.OneHotCategorical(strata.ones(2)), D.Categorical)


SCALAR = {
    "Normal": lambda: D.Normal(0.0, 1.0), "Bernoulli": lambda: D.Bernoulli(logits=strata.tensor(0.3)), "Gumbel": lambda: D.Gumbel(0.0, 1.0),
    "Gamma": lambda: D.Gamma(1.0, 2.0), "Uniform": lambda: D.Uniform(0.0, 1.0), "LogNormal": lambda: D.LogNormal(0.0, 1.0),
    "StudentT": lambda: D.StudentT(3.0), "VonMises": lambda: D.VonMises(strata.tensor(0.0), strata.tensor(1.0)),
    "Beta": lambda: D.Beta(1.0, 2.0), "Chi2": lambda: D.Chi2(2.0), "Independent": lambda: D.Independent(D.Normal(0.0, 1.0), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALAR)
def test_expand_to_no_dims(name):
    d = SCALAR[name]()
    same = d.expand(())
    assert same.batch_shape == () and same.sample().shape == () and type(same) is type(d)
    assert same.log_prob(strata.tensor(1.0)).equal(d.log_prob(strata.tensor(1.0)))
    for wide in ((), (3,)):
        with pytest.raises(RuntimeError):
            d.expand((2,)).expand(wide)


@pytest.mark.parametrize("value", [-1.0, 0.0, float("nan")])
def test_parameters_that_are_parts_of_another_distribution_are_checked(value):
    for make in (D.Chi2, lambda v, **o: D.Chi2(strata.tensor([1.0, v]), **o), lambda v, **o: D.InverseGamma(1.0, v, **o)):
        for options in ({}, {"validate_args": True}):
            with pytest.raises(ValueError, match="Expected parameter"):
                make(value, **options)
        make(value, validate_args=False)
    assert D.Bernoulli(logits=strata.tensor(300.0)).probs == 1  # what is computed from another parameter is not


def test_the_ends_of_a_gumbel_distribution_are_finite():
    """Those of its base, so that strata.rand gives finite samples."""
    found = D.Gumbel(0.0, 1.0).icdf(strata.tensor([0.0, 1e-30, 0.5, 1.0]))
    assert_close(found, strata.tensor([-4.4698, -4.2352, 0.3665, 15.9424]), atol=1e-3, rtol=0)
    assert D.Gumbel(0.0, 1.0).icdf(strata.tensor(-0.5)).isnan()


def test_numbers_as_values_where_nothing_is_checked():
    for make in (D.Geometric, D.Bernoulli, lambda p, **o: D.Bernoulli(logits=p, **o)):
        d = make(strata.tensor([0.2, 0.3]), validate_args=False)
        for value in (1, 0.5, True):
            assert d.log_prob(value).equal(d.log_prob(strata.tensor(float(value))))
    gumbel = D.Gumbel(strata.zeros(2), 1.0)
    assert gumbel.cdf(True).equal(gumbel.cdf(strata.tensor(1.0))) and gumbel.icdf(0.5).equal(gumbel.icdf(strata.tensor(0.5)))
